"""Names of the Java client's security options, and what looks like one with a typing error.

Kafka ignores a name that it does not know: the connection would be weaker than the text says.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

# Of CommonClientConfigs, SaslConfigs, SslConfigs and SecurityConfig in kafka-clients 3.9 and 4.1.
_BY_PREFIX: Final = {
    "security": "protocol providers",
    "sasl": "mechanism jaas.config client.callback.handler.class",
    "sasl.login": "callback.handler.class class connect.timeout.ms read.timeout.ms "
    "retry.backoff.ms retry.backoff.max.ms refresh.window.factor refresh.window.jitter "
    "refresh.min.period.seconds refresh.buffer.seconds",
    "sasl.kerberos": "service.name kinit.cmd ticket.renew.window.factor ticket.renew.jitter "
    "min.time.before.relogin",
    "sasl.oauthbearer": "scope.claim.name sub.claim.name token.endpoint.url clock.skew.seconds "
    "expected.audience expected.issuer header.urlencode scope jwt.retriever.class "
    "jwt.validator.class client.credentials.client.id client.credentials.client.secret",
    "sasl.oauthbearer.jwks.endpoint": "url refresh.ms retry.backoff.ms retry.backoff.max.ms",
    # Since 4.1.
    "sasl.oauthbearer.assertion": "algorithm claim.aud claim.exp.seconds claim.iss claim.sub "
    "claim.jti.include claim.nbf.seconds file private.key.file private.key.passphrase "
    "template.file",
    "ssl": "protocol provider cipher.suites enabled.protocols key.password "
    "endpoint.identification.algorithm secure.random.implementation engine.factory.class "
    "keymanager.algorithm trustmanager.algorithm",
    "ssl.keystore": "type location password key certificate.chain",
    "ssl.truststore": "type location password certificates",
}
SECURITY_OPTIONS: Final = frozenset(
    f"{prefix}.{name}" for prefix, names in _BY_PREFIX.items() for name in names.split()
)
SECURITY_PREFIXES: Final = ("security.", "sasl.", "ssl.")


def near_security_option(name: str) -> str | None:
    """The security option that a name is nearly, or with other separators; None: of neither."""
    if name in SECURITY_OPTIONS:
        return None
    dotted = name.strip().lower().replace("_", ".").replace("-", ".")
    close = get_close_matches(dotted, SECURITY_OPTIONS, n=1, cutoff=0.8)
    return close[0] if close else None
