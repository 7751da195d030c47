{{/* Labels of every object. */}}
{{- define "tributary-hub.labels" -}}
app.kubernetes.io/name: tributary-hub
app.kubernetes.io/part-of: tributary
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{/* The image, by digest where one is given. */}}
{{- define "tributary-hub.image" -}}
{{- with .Values.image -}}
{{- with .registry }}{{ . }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The file of several clustersets: the one of the other values first. What they have of their own lies below their names. */}}
{{- define "tributary-hub.clustersets" -}}
{{- $listen := ternary "[::]" .Values.listen (eq .Values.listen "::") -}}
clustersets:
- name: {{ .Values.clusterset }}
  data: /var/lib/tributary
  listen: {{ printf "%s:8443" $listen | quote }}
  tls: {ca: /etc/tributary/tls/ca.crt, cert: /etc/tributary/tls/tls.crt, key: /etc/tributary/tls/tls.key}
  {{- if .Values.join.secretName }}
  join:
    listen: {{ printf "%s:8444" $listen | quote }}
    cert: /etc/tributary/join/tls.crt
    key: /etc/tributary/join/tls.key
    memberCertLifetime: {{ .Values.join.certificateLifetime }}
  {{- end }}
  {{- with .Values.clientKeys }}
  {{- if or .members .renewalIssuers .revocationLists .deniedKeys }}
  clients:
    {{- with .members }}
    memberKeys: {{ . }}
    {{- end }}
    {{- with .renewalIssuers }}
    renewalIssuer: /etc/tributary/client-keys/{{ . }}
    {{- end }}
    {{- with .revocationLists }}
    clientCrl: /etc/tributary/client-keys/{{ . }}
    {{- end }}
    {{- with .deniedKeys }}
    denyKeys: /etc/tributary/client-keys/{{ . }}
    {{- end }}
  {{- end }}
  {{- end }}
  {{- if .Values.adoptEpoch }}
  adoptEpoch: true
  {{- end }}
  {{- with .Values.inventory.clusterManager }}
  clusterManager: {{ . }}
  {{- end }}
  {{- if .Values.inventory.accessProvidersConfigMapName }}
  accessProviders: /etc/tributary/inventory/access-providers.yaml
  {{- end }}
  {{- with .Values.topology }}
  topology: {{ . }}
  {{- end }}
  {{- if eq .Values.topology "own" }}
  topologyRollouts: {{ .Values.topologyRollouts }}
  {{- end }}
  {{- with .Values.topologyEnrolment }}
  {{- if .mode }}
  topologyEnrolment:
    mode: {{ .mode }}
    agent: /etc/tributary/agent/agent.yaml
    hubAddresses: {{ toJson .hubs }}
    joinAddresses: {{ toJson .joinAddresses }}
    drainLimit: {{ .drainLimit }}
  {{- end }}
  {{- end }}
{{- range $index, $set := .Values.furtherClustersets }}
- name: {{ .name }}
  data: /var/lib/tributary-further/{{ .name }}
  listen: {{ printf "%s:%d" $listen (add 8453 (mul 10 $index)) | quote }}
  tls:
    ca: /etc/tributary/further/{{ .name }}/tls/ca.crt
    cert: /etc/tributary/further/{{ .name }}/tls/tls.crt
    key: /etc/tributary/further/{{ .name }}/tls/tls.key
  {{- if .joinSecretName }}
  join:
    listen: {{ printf "%s:%d" $listen (add 8454 (mul 10 $index)) | quote }}
    cert: /etc/tributary/further/{{ .name }}/join/tls.crt
    key: /etc/tributary/further/{{ .name }}/join/tls.key
    memberCertLifetime: {{ $.Values.join.certificateLifetime }}
  {{- end }}
  {{- if .adoptEpoch }}
  adoptEpoch: true
  {{- end }}
{{- end }}
{{- end -}}

{{/* What a schema cannot say: values that contradict each other, and what the cluster must have before. */}}
{{- define "tributary-hub.check" -}}
{{- with .Values -}}
{{- if and .inventory.enabled (eq (printf "tributary-%s" .clusterset) $.Release.Namespace) -}}
{{- fail (printf "the inventory of the clusterset %s would be the hub's own namespace %s: install the hub into another, --namespace NAME" .clusterset $.Release.Namespace) -}}
{{- end -}}
{{- $names := list .clusterset -}}
{{- $ports := list (int .service.port) -}}
{{- if .join.secretName }}{{- $ports = append $ports (int .join.port) }}{{- end -}}
{{- range .furtherClustersets -}}
{{- if has .name $names -}}
{{- fail (printf "furtherClustersets has %s, and another clusterset of this hub has that name: each needs a name of its own" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- if and $.Values.inventory.enabled (eq (printf "tributary-%s" .name) $.Release.Namespace) -}}
{{- fail (printf "the inventory of the clusterset %s would be the hub's own namespace %s: install the hub into another, --namespace NAME" .name $.Release.Namespace) -}}
{{- end -}}
{{- if and .joinSecretName (not .joinPort) -}}
{{- fail (printf "furtherClustersets: %s has joinSecretName and no joinPort: say at which port of the Service its clusters join" .name) -}}
{{- end -}}
{{- range list .port (ternary .joinPort nil (not (empty .joinSecretName))) -}}
{{- if . -}}
{{- if has (int .) $ports -}}
{{- fail (printf "furtherClustersets: port %d of the Service is taken: give each clusterset, and each joining, a port of its own" (int .)) -}}
{{- end -}}
{{- $ports = append $ports (int .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .topology (not .inventory.enabled) -}}
{{- fail (printf "topology is %s and inventory.enabled is false: what is observed is shown in ClusterProfiles, --set inventory.enabled=true" .topology) -}}
{{- end -}}
{{- with .topologyEnrolment -}}
{{- if .mode -}}
{{- if not $.Values.topology -}}
{{- fail (printf "topologyEnrolment.mode is %s and topology is empty: nothing looks at Clusters, --set topology=observe" .mode) -}}
{{- end -}}
{{- if not $.Values.join.secretName -}}
{{- fail (printf "topologyEnrolment.mode is %s and join.secretName is empty: no cluster can join, name the Secret with what signs for those that do" .mode) -}}
{{- end -}}
{{- if not .configMapName -}}
{{- fail (printf "topologyEnrolment.mode is %s and topologyEnrolment.configMapName is empty: name the ConfigMap with the objects of the agent, rendered with its chart" .mode) -}}
{{- end -}}
{{- if not .hubs -}}
{{- fail (printf "topologyEnrolment.mode is %s and topologyEnrolment.hubs is empty: say where members reach this hub, --set 'topologyEnrolment.hubs={https://HOST:8443}'" .mode) -}}
{{- end -}}
{{- else if or .configMapName .hubs .joinAddresses -}}
{{- fail "topologyEnrolment.mode is empty and other values of topologyEnrolment are not: say manifest or install, or take them back" -}}
{{- end -}}
{{- end -}}
{{- with .topologyWebhook -}}
{{- if and .secretName (not $.Values.inventory.enabled) -}}
{{- fail (printf "topologyWebhook.secretName is %s and inventory.enabled is false: the hub has no account to read classes and Clusters with, --set inventory.enabled=true" .secretName) -}}
{{- end -}}
{{- if and .secretName (not .caBundle) (not .annotations) -}}
{{- fail (printf "topologyWebhook.secretName is %s and topologyWebhook.caBundle is empty: the API server does not know who issued it, --set-file topologyWebhook.caBundle=ca.crt, or give annotations for who puts it there" .secretName) -}}
{{- end -}}
{{- if and (or .caBundle .annotations) (not .secretName) -}}
{{- fail "topologyWebhook.secretName is empty and other values of topologyWebhook are not: name the Secret with its certificate, or take them back" -}}
{{- end -}}
{{- end -}}
{{- if and (eq .service.type "ClusterIP") (not .address) (not .service.externalIPs) -}}
{{- fail "service.type is ClusterIP and members are in other clusters: say what leads to the hub, --set address=HOST:PORT" -}}
{{- end -}}
{{- if gt (regexFind "[0-9]+$" .address | int) 65535 -}}
{{- fail (printf "address is %s: a port is at most 65535" .address) -}}
{{- end -}}
{{- if and .service.nodePort (eq .service.type "ClusterIP") -}}
{{- fail "service.nodePort is set and service.type is ClusterIP: --set service.type=NodePort, or take service.nodePort out" -}}
{{- end -}}
{{- if and .service.loadBalancerClass (ne .service.type "LoadBalancer") -}}
{{- fail "service.loadBalancerClass is set and service.type is not LoadBalancer: take one of them back" -}}
{{- end -}}
{{- $files := list .clientKeys.renewalIssuers .clientKeys.revocationLists .clientKeys.deniedKeys | compact -}}
{{- if and $files (not .clientKeys.configMapName) -}}
{{- fail (printf "clientKeys has %s and clientKeys.configMapName is empty: name the ConfigMap that holds it" (join ", " $files)) -}}
{{- end -}}
{{- if and .clientKeys.configMapName (not $files) -}}
{{- fail (printf "clientKeys.configMapName is %s and nothing is read of it: name a key of it, as --set clientKeys.deniedKeys=denied-keys" .clientKeys.configMapName) -}}
{{- end -}}
{{- if and (eq .clientKeys.members "renew") (not .clientKeys.renewalIssuers) -}}
{{- fail "clientKeys.members is renew and clientKeys.renewalIssuers is empty: say which authorities may renew, or take renew out" -}}
{{- end -}}
{{- if and .certManager.issuer (not .certManager.trustDomain) -}}
{{- fail "certManager.issuer is given and certManager.trustDomain is empty: say it as the clusterset's certificates do, --set certManager.trustDomain=example.org" -}}
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
{{- if and .Values.tls.check (lookup "v1" "Namespace" "" "kube-system") -}}
{{- $name := .Values.tls.secretName -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace $name -}}
{{- range list "tls.crt" "tls.key" "ca.crt" -}}
{{- if not (or $.Values.certManager.issuer (hasKey ($secret.data | default dict) .)) -}}
{{- fail (printf "the Secret %s/%s has no %s: kubectl -n %s create secret generic %s --from-file=tls.crt=hub.crt --from-file=tls.key=hub.key --from-file=ca.crt=ca.crt (tributary-hub certs makes the files), or --set tls.check=false if it comes later" $.Release.Namespace $name . $.Release.Namespace $name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.furtherClustersets -}}
{{- $name := .tlsSecretName -}}
{{- $secret := lookup "v1" "Secret" $.Release.Namespace $name -}}
{{- range list "tls.crt" "tls.key" "ca.crt" -}}
{{- if not (hasKey ($secret.data | default dict) .) -}}
{{- fail (printf "the Secret %s/%s has no %s: kubectl -n %s create secret generic %s --from-file=tls.crt=hub.crt --from-file=tls.key=hub.key --from-file=ca.crt=ca.crt (tributary-hub certs makes the files), or --set tls.check=false if it comes later" $.Release.Namespace $name . $.Release.Namespace $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $files := .Values.clientKeys.configMapName -}}
{{- if $files -}}
{{- $configMap := lookup "v1" "ConfigMap" .Release.Namespace $files -}}
{{- range list .Values.clientKeys.renewalIssuers .Values.clientKeys.revocationLists .Values.clientKeys.deniedKeys | compact -}}
{{- if not (hasKey ($configMap.data | default dict) .) -}}
{{- fail (printf "the ConfigMap %s/%s has no %s: kubectl -n %s create configmap %s --from-file=%s=FILE, or --set tls.check=false if it comes later" $.Release.Namespace $files . $.Release.Namespace $files .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
