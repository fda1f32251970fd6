"""Names of the Java client's security options, and what looks like one with a typing error.

Kafka ignores a name that it does not know: the connection would be weaker than the text says.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

# Of CommonClientConfigs, SaslConfigs, SslConfigs and SecurityConfig in kafka-clients 3.9 and 4.1.
SECURITY_OPTIONS: Final = frozenset(
    {
        *("security.protocol", "security.providers"),
        *("sasl.mechanism", "sasl.jaas.config", "sasl.client.callback.handler.class"),
        *("sasl.login.callback.handler.class", "sasl.login.class"),
        *("sasl.kerberos.service.name", "sasl.kerberos.kinit.cmd"),
        *("sasl.kerberos.ticket.renew.window.factor", "sasl.kerberos.ticket.renew.jitter"),
        "sasl.kerberos.min.time.before.relogin",
        *("sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter"),
        *("sasl.login.refresh.min.period.seconds", "sasl.login.refresh.buffer.seconds"),
        *("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"),
        *("sasl.login.retry.backoff.ms", "sasl.login.retry.backoff.max.ms"),
        *("sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name"),
        *("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.jwks.endpoint.url"),
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        *("sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience"),
        *("sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.header.urlencode"),
        *("ssl.protocol", "ssl.provider", "ssl.cipher.suites", "ssl.enabled.protocols"),
        *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"),
        *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password"),
        *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password"),
        *("ssl.truststore.certificates", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm"),
        *("ssl.endpoint.identification.algorithm", "ssl.secure.random.implementation"),
        "ssl.engine.factory.class",
        # Since 4.1.
        *("sasl.oauthbearer.scope", "sasl.oauthbearer.assertion.algorithm"),
        *("sasl.oauthbearer.assertion.claim.aud", "sasl.oauthbearer.assertion.claim.exp.seconds"),
        *("sasl.oauthbearer.assertion.claim.iss", "sasl.oauthbearer.assertion.claim.jti.include"),
        *("sasl.oauthbearer.assertion.claim.nbf.seconds", "sasl.oauthbearer.assertion.claim.sub"),
        *("sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.private.key.file"),
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        *("sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.jwt.validator.class"),
    }
)
SECURITY_PREFIXES: Final = ("security.", "sasl.", "ssl.")


def near_security_option(name: str) -> str | None:
    """The security option that a name is nearly, or with other separators; None: of neither."""
    if name in SECURITY_OPTIONS:
        return None
    dotted = name.strip().lower().replace("_", ".").replace("-", ".")
    if dotted in SECURITY_OPTIONS:
        return dotted
    close = get_close_matches(dotted, SECURITY_OPTIONS, n=1, cutoff=0.8)
    return close[0] if close else None
