{{/* Labels of every object. */}}
{{- define "tributary-agent.labels" -}}
app.kubernetes.io/name: tributary-agent
app.kubernetes.io/part-of: tributary
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{/* The image, by digest where one is given. */}}
{{- define "tributary-agent.image" -}}
{{- with .Values.image -}}
{{- with .registry }}{{ . }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Whether the cluster has admission policies and FlowSchemas, as `.enabled` decides: true, false, or auto. Auto asks the
cluster. Where nobody can ask it (`helm template`, GitOps), the Kubernetes version that Helm renders for decides, so that
the policies are never left out in silence. */}}
{{- define "tributary-agent.serves" -}}
{{- if kindIs "bool" .enabled -}}
{{- if .enabled }}true{{ end -}}
{{- else if .root.Capabilities.APIVersions.Has .kind -}}
true
{{- else if not (lookup "v1" "Namespace" "" "kube-system") -}}
{{- if semverCompare .since .root.Capabilities.KubeVersion.Version }}true{{ end -}}
{{- end -}}
{{- end -}}

{{- define "tributary-agent.policies" -}}
{{- include "tributary-agent.serves" (dict "root" . "enabled" .Values.policies.enabled "kind" "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" "since" ">=1.30.0-0") -}}
{{- end -}}

{{- define "tributary-agent.flow-schema" -}}
{{- include "tributary-agent.serves" (dict "root" . "enabled" .Values.flowSchema.enabled "kind" "flowcontrol.apiserver.k8s.io/v1/FlowSchema" "since" ">=1.29.0-0") -}}
{{- end -}}

{{/* The agent as the API server knows it. */}}
{{- define "tributary-agent.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:tributary-agent
{{- end -}}

{{/* What a schema cannot say: values that contradict each other, and what the cluster must have before. */}}
{{- define "tributary-agent.check" -}}
{{- with .Values -}}
{{- if and (not .hubs) (not .hubConfigMap) (not .join.secretName) -}}
{{- fail "hubs is empty: say where the hub is, --set 'hubs={https://HOST:8443}'" -}}
{{- end -}}
{{- if and .hubs .hubConfigMap -}}
{{- fail "hubs and hubConfigMap both say where the hub is: take one of them out" -}}
{{- end -}}
{{- range .hubs -}}
{{- if gt (regexFind "[0-9]+$" . | int) 65535 -}}
{{- fail (printf "hubs has %s: a port is at most 65535" .) -}}
{{- end -}}
{{- end -}}
{{- if eq .join.secretName .tls.secretName -}}
{{- fail "join.secretName and tls.secretName are the same: the join string and what the agent keeps are two Secrets" -}}
{{- end -}}
{{- if and .certManager.issuer (not .certManager.trustDomain) -}}
{{- fail "certManager.issuer is given and certManager.trustDomain is empty: say it as the clusterset's certificates do, --set certManager.trustDomain=example.org" -}}
{{- end -}}
{{- if and .certManager.issuer .join.secretName -}}
{{- fail "certManager.issuer and join.secretName both make the Secret tls.secretName: take one of them out" -}}
{{- end -}}
{{- if and .certManager.issuer (not .clusterId) -}}
{{- fail "certManager.issuer is given and clusterId is empty: the certificate has the id of the cluster, --set clusterId=east" -}}
{{- end -}}
{{- if and .certManager.issuer (lookup "v1" "Namespace" "" "kube-system") (not ($.Capabilities.APIVersions.Has "cert-manager.io/v1")) -}}
{{- fail "certManager.issuer is given, and this cluster does not have cert-manager's definitions: install it first, or take the issuer out" -}}
{{- end -}}
{{- if and .priorityClass.create (not .priorityClass.name) -}}
{{- fail "priorityClass.create is true and priorityClass.name is empty: give it a name, or --set priorityClass.create=false" -}}
{{- end -}}
{{- if and .monitoring.rules (not .monitoring.runbook) -}}
{{- fail "monitoring.rules is true and monitoring.runbook is empty: say where docs/runbooks is published, --set monitoring.runbook=https://HOST/PATH/runbooks" -}}
{{- end -}}
{{- if and (or .monitoring.rules .monitoring.podMonitor) (lookup "v1" "Namespace" "" "kube-system") (not ($.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- fail "monitoring.rules and monitoring.podMonitor need the Prometheus operator, whose definitions this cluster does not have: install it first, or take both back" -}}
{{- end -}}
{{- end -}}
{{- if lookup "v1" "Namespace" "" "kube-system" -}}
{{- if not (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "serviceimports.multicluster.x-k8s.io") -}}
{{- fail "this cluster has no ServiceImports: install the definitions first, helm install tributary-crds deploy/charts/crds" -}}
{{- end -}}
{{- if and .Values.tls.check (not .Values.join.secretName) (not .Values.certManager.issuer) -}}
{{- $name := .Values.tls.secretName -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace $name -}}
{{- range list "tls.crt" "tls.key" "ca.crt" -}}
{{- if not (hasKey ($secret.data | default dict) .) -}}
{{- fail (printf "the Secret %s/%s has no %s: kubectl -n %s create secret generic %s --from-file=tls.crt=CLUSTER.crt --from-file=tls.key=CLUSTER.key --from-file=ca.crt=ca.crt (tributary-hub certs makes the files), or --set tls.check=false if it comes later" $.Release.Namespace $name . $.Release.Namespace $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
