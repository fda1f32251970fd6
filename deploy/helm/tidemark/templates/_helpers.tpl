{{- define "tidemark.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tidemark.labels" -}}
app.kubernetes.io/name: tidemark
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tidemark
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tidemark.selector" -}}
app.kubernetes.io/name: tidemark
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tidemark.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}{{ else if .Values.serviceAccount.create }}{{ include "tidemark.name" . }}{{ else }}default{{ end }}
{{- end }}

{{- define "tidemark.runbookUrl" -}}
{{- .Values.runbookUrl | default (printf "http://%s-export.%s:%v/docs/runbooks" (include "tidemark.name" .) .Release.Namespace .Values.export.service.port) }}
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
  "detect" (dict "runbook_url" (include "tidemark.runbookUrl" .)) }}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) }}
{{- end }}

{{/* A pod. Arguments: root, verb, port, image, values of the verb, whether it keeps state. */}}
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
      image: "{{ .image }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args:
        - {{ .verb }}
        {{- range .values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      securityContext:
        {{- toYaml .root.Values.containerSecurityContext | nindent 8 }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      ports:
        - {name: http, containerPort: {{ .port }}}
      livenessProbe:
        httpGet: {path: /-/healthy, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /-/ready, port: http}
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
{{- end }}
