{{- define "jobboard.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) }}
{{- $name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* host:port of a pod, by its number: include "jobboard.pod" (list . 0) */}}
{{- define "jobboard.pod" -}}
{{- $root := index . 0 -}}
{{ include "jobboard.name" $root }}-{{ index . 1 }}.{{ include "jobboard.name" $root }}-servers:{{ $root.Values.server.port }}
{{- end }}

{{- define "jobboard.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "jobboard.labels" -}}
{{ include "jobboard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "jobboard.image" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is missing: no registry has the image yet. Put it into one that the cluster reads, and name it here: registry.example.com/jobboard" -}}
{{- end -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "jobboard.secret" -}}
{{ .Values.existingSecret | default (include "jobboard.name" .) }}
{{- end }}

{{/* The keys of the secret, with blanks between them. */}}
{{- define "jobboard.secretKeys" -}}
{{- if .Values.existingSecret -}}
{{- if not (has "default" .Values.existingSecretKeys) -}}
{{- fail "existingSecretKeys: `default` is missing: the password of the user default must be in the secret" -}}
{{- end -}}
{{- join " " .Values.existingSecretKeys -}}
{{- else -}}
{{- if not .Values.passwords.default -}}
{{- fail "passwords.default is missing: give the password of the user default, or name a secret of yours in existingSecret" -}}
{{- end -}}
{{- $keys := list -}}
{{- range $name := list "default" "producer" "worker" "operator" "approver" "observer" -}}
{{- if index $.Values.passwords $name -}}{{- $keys = append $keys $name -}}{{- end -}}
{{- end -}}
{{- if .Values.metricsToken -}}{{- $keys = append $keys "metrics-token" -}}{{- end -}}
{{- join " " $keys -}}
{{- end -}}
{{- end }}

{{/* Passwords as files: the variables that name them. */}}
{{- define "jobboard.passwordFiles" -}}
{{- range $key := splitList " " (include "jobboard.secretKeys" .) }}
{{- if eq $key "default" }}
- name: JOBBOARD_PASSWORD_FILE
  value: /run/secrets/jobboard/default
{{- else if ne $key "metrics-token" }}
- name: JOBBOARD_{{ upper $key }}_PASSWORD_FILE
  value: /run/secrets/jobboard/{{ $key }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Of the chart's own passwords: other ones start the pods anew. scrypt, so that who may read pods and no secrets
cannot try words quickly; by release, so that equal passwords look different.
include "jobboard.mark" (list . what)
*/}}
{{- define "jobboard.mark" -}}
{{- $root := index . 0 -}}
{{- if not $root.Values.existingSecret }}
jobboard/secret: {{ derivePassword 1 "long" (index . 1 | toJson) $root.Release.Name $root.Release.Namespace | sha256sum }}
{{- end }}
{{- end }}

{{/* Variables and mounts that both kinds of pods have. */}}
{{- define "jobboard.tls" -}}
{{- if .Values.tls.secret }}
- name: JOBBOARD_TLS
  value: /run/secrets/tls
{{- end }}
{{- end }}

{{- define "jobboard.tlsMount" -}}
{{- if .Values.tls.secret }}
- name: tls
  mountPath: /run/secrets/tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "jobboard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "jobboard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}
