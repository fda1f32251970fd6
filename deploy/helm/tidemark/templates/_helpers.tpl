{{- define "tidemark.chart" -}}
{{- .Values.nameOverride | default .Chart.Name }}
{{- end }}

{{- define "tidemark.name" -}}
{{- $chart := include "tidemark.chart" . }}
{{- $full := contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) }}
{{- .Values.fullnameOverride | default $full | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "tidemark.labels" -}}
app.kubernetes.io/name: {{ include "tidemark.chart" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tidemark
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tidemark.selector" -}}
app.kubernetes.io/name: {{ include "tidemark.chart" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tidemark.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}{{ else if .Values.serviceAccount.create }}{{ include "tidemark.name" . }}{{ else }}default{{ end }}
{{- end }}

{{/* Where people reach the status page: by the ingress, else inside of the cluster. */}}
{{- define "tidemark.address" -}}
{{- if .Values.ingress.enabled }}
{{- printf "%s://%s" (empty .Values.ingress.tls | ternary "http" "https") (first .Values.ingress.hosts) }}
{{- else }}
{{- printf "%s://%s-export.%s:%v" (include "tidemark.scheme" (dict "root" . "verb" "export") | lower) (include "tidemark.name" .) .Release.Namespace .Values.export.service.port }}
{{- end }}
{{- end }}

{{- define "tidemark.runbookUrl" -}}
{{- .Values.runbookUrl | default (printf "%s/docs/runbooks" (include "tidemark.address" .)) }}
{{- end }}

{{/* Tidemark's configuration: what the chart sets, below what the values say. */}}
{{- define "tidemark.config" -}}
{{- $own := dict
  "log_format" "json"
  "collect" (ternary
    (dict "listen" "0.0.0.0:9756" "spool_directory" "/var/lib/tidemark/spool")
    (dict "listen" "0.0.0.0:9756") (not (empty .Values.collect.spool)))
  "stream" (dict "listen" "0.0.0.0:9755" "checkpoint" "/var/lib/tidemark/checkpoint")
  "export" (dict "listen" "0.0.0.0:9754")
  "notify" (dict "external_url" (include "tidemark.address" .)) }}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) }}
{{- end }}

{{/* HTTP or HTTPS: how a process is probed and scraped. Arguments: root, verb. */}}
{{- define "tidemark.scheme" -}}
{{- $options := index .root.Values.config .verb | default dict }}
{{- (index .root.Values .verb).scheme | default (ternary "HTTPS" "HTTP" (not (empty $options.web_config_file))) }}
{{- end }}

{{/* The port of a process, as its `listen` says. Arguments: root, verb. */}}
{{- define "tidemark.port" -}}
{{- $listen := index (fromYaml (include "tidemark.config" .root)) .verb "listen" | toString }}
{{- if not (regexMatch ":[0-9]+$" $listen) }}
{{- fail (printf "config.%s.listen: %s is no address:port. Leave it out: the chart sets it." .verb $listen) }}
{{- else if regexMatch "^(127\\.|localhost:|\\[::1\\]:)" $listen }}
{{- fail (printf "config.%s.listen: no probe reaches %s from outside of the pod: give 0.0.0.0 in place of the host." .verb $listen) }}
{{- end }}
{{- regexFind "[0-9]+$" $listen }}
{{- end }}

{{/* How the kubelet asks a process. Arguments: root, verb, values of the verb, path. */}}
{{- define "tidemark.probe" -}}
{{- if .values.tcpProbes -}}
tcpSocket: {port: http}
{{- else -}}
httpGet: {path: {{ .path }}, port: http, scheme: {{ include "tidemark.scheme" . }}}
{{- end }}
{{- end }}

{{/* A pod. Arguments: root, verb, values of the verb, whether it keeps state. */}}
{{- define "tidemark.pod" -}}
metadata:
  labels:
    {{- include "tidemark.selector" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .verb }}
    {{- with .root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A changed configuration starts new pods.
    checksum/config: {{ include "tidemark.config" .root | sha256sum }}
    {{- with .root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  serviceAccountName: {{ include "tidemark.serviceAccount" .root }}
  # A verb exits within 10 s of SIGTERM.
  terminationGracePeriodSeconds: 15
  {{- with .root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml .root.Values.podSecurityContext | nindent 4 }}
  containers:
    - name: {{ .verb }}
      {{- $whole := printf "%s:%s" .root.Values.image.repository (.root.Values.image.tag | default .root.Chart.AppVersion) }}
      image: {{ (eq .verb "stream" | ternary "" .root.Values.image.slim) | default $whole | quote }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args:
        - {{ .verb }}
        {{- range .values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      {{- with .root.Values.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- toYaml .root.Values.containerSecurityContext | nindent 8 }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      ports:
        - {name: http, containerPort: {{ include "tidemark.port" . }}}
      livenessProbe:
        {{- include "tidemark.probe" (set (omit . "path") "path" "/-/healthy") | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        {{- include "tidemark.probe" (set (omit . "path") "path" "/-/ready") | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 5
      volumeMounts:
        - {name: configuration, mountPath: /etc/tidemark, readOnly: true}
        - {name: scratch, mountPath: /tmp}
        {{- if .state }}
        - {name: state, mountPath: /var/lib/tidemark}
        {{- end }}
        {{- if .root.Values.existingSecret }}
        - {name: secrets, mountPath: /run/secrets/tidemark, readOnly: true}
        {{- end }}
        {{- range $number, $name := .root.Values.secrets }}
        - {name: secret-{{ $number }}, mountPath: /run/secrets/{{ $name }}, readOnly: true}
        {{- end }}
        {{- with .root.Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: configuration
      configMap: {name: {{ include "tidemark.name" .root }}}
    - name: scratch
      emptyDir: {}
    {{- with .values.spool }}
    - name: state
      {{- if .persistent }}
      persistentVolumeClaim: {claimName: {{ include "tidemark.name" $.root }}-collect}
      {{- else }}
      emptyDir: {sizeLimit: {{ .size }}}
      {{- end }}
    {{- end }}
    {{- with .root.Values.existingSecret }}
    - name: secrets
      secret: {secretName: {{ . }}}
    {{- end }}
    {{- range $number, $name := .root.Values.secrets }}
    - name: secret-{{ $number }}
      secret: {secretName: {{ $name }}}
    {{- end }}
    {{- with .root.Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
