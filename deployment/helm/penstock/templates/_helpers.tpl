{{/* The Secret with the variables of the storage. */}}
{{- define "penstock.storageSecret" -}}
{{ .Values.storage.existingSecret | default (printf "%s-storage" .Release.Name) }}
{{- end }}

{{- define "penstock.tokenSecret" -}}
{{ .Values.token.existingSecret | default .Release.Name }}
{{- end }}

{{- define "penstock.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "penstock.jobId" -}}
{{ .Values.job.id | default (printf "%s/%s" .Release.Namespace .Release.Name | sha256sum | trunc 32) }}
{{- end }}

{{/* What the Pod Security Standard "restricted" demands of a pod. */}}
{{- define "penstock.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 185
  runAsGroup: 185
  fsGroup: 185
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "penstock.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Nodes on which a pod may run; the argument is `server`, `job` or `executor` of the values. */}}
{{- define "penstock.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "penstock.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* The options that other values decide, as JSON. */}}
{{- define "penstock.decided" -}}
{{- $executor := .Values.executor -}}
{{- $url := .Values.storage.url | trimSuffix "/" -}}
{{- dict
  "rest.bind-address" "0.0.0.0"
  "rest.port" 8081
  "high-availability.type" "storage"
  "high-availability.storageDir" (printf "%s/service" $url)
  "high-availability.cluster-id" .Release.Name
  "execution.checkpointing.dir" (printf "%s/checkpoints" $url)
  "execution.checkpointing.savepoint-dir" (printf "%s/savepoints" $url)
  "parallelism.default" (int .Values.parallelism)
  "spark.master" "k8s://https://kubernetes.default.svc"
  "spark.executor.instances" (int $executor.instances)
  "spark.executor.cores" (int $executor.cores)
  "spark.executor.memory" $executor.memory
  "spark.executor.memoryOverhead" $executor.memoryOverhead
  "spark.kubernetes.authenticate.executor.serviceAccountName" (printf "%s-executor" .Release.Name)
  "spark.kubernetes.executor.podTemplateFile" "/etc/penstock/executor.yaml"
  "spark.kubernetes.executor.request.cores" $executor.requestCores
  | toJson -}}
{{- end }}

{{/* Ends with an error unless one of two values is set; the arguments are their map, the name of it, and their names. */}}
{{- define "penstock.oneOf" -}}
{{- $values := index . 0 -}}{{- $map := index . 1 -}}{{- $first := index . 2 -}}{{- $second := index . 3 -}}
{{- if and (get $values $first) (get $values $second) -}}
{{- fail (printf "%s.%s and %s.%s are both set. Set one of them" $map $first $map $second) -}}
{{- else if not (or (get $values $first) (get $values $second)) -}}
{{- fail (printf "neither %s.%s nor %s.%s is set. Set one of them" $map $first $map $second) -}}
{{- end -}}
{{- end }}

{{/* Ends with an error where values contradict each other. What one value alone may be is in values.schema.json. */}}
{{- define "penstock.check" -}}
{{- $decided := include "penstock.decided" . | fromJson -}}
{{- range $name, $value := .Values.configuration -}}
{{- if hasKey $decided $name -}}
{{- fail (printf "configuration.%s is set, which other values decide (storage.url, executor, parallelism). Set those" $name) -}}
{{- end -}}
{{- end -}}
{{- $slots := mul (int .Values.executor.instances) (int .Values.executor.cores) -}}
{{- $dynamic := eq "true" (get .Values.configuration "spark.dynamicAllocation.enabled" | toString) -}}
{{- if and (lt $slots (int64 .Values.parallelism)) (not $dynamic) -}}
{{- fail (printf "parallelism is %d, and executor.instances times executor.cores is %d. A job needs a core for every slot: raise them, or set configuration.spark.dynamicAllocation.enabled" (int .Values.parallelism) $slots) -}}
{{- end -}}
{{- if eq .Values.mode "server" -}}
{{- include "penstock.oneOf" (list .Values.token "token" "value" "existingSecret") -}}
{{- else -}}
{{- include "penstock.oneOf" (list .Values.job "job" "source" "path") -}}
{{- end -}}
{{- if and .Values.storage.existingSecret (gt (len (omit .Values.storage.variables "AWS_DEFAULT_REGION")) 0) -}}
{{- fail "storage.variables and storage.existingSecret are both set. Put the variables into one of them" -}}
{{- end -}}
{{- end }}
