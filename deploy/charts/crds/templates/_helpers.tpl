{{/*
A definition that is of a newer mcs-api than ours stays in charge: ours would take fields away.
Takes the definition as ours has it and the name of the value that leaves it out.
*/}}
{{- define "tributary-crds.refuse-newer" -}}
{{- $label := "multicluster.x-k8s.io/release-version" -}}
{{- $ours := dig "metadata" "labels" $label "" .ours -}}
{{- $installed := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .ours.metadata.name -}}
{{- $theirs := dig "metadata" "labels" $label "" ($installed | default dict) -}}
{{- if and $ours $theirs -}}
{{- if semverCompare (printf ">%s" $ours) $theirs -}}
{{- fail (printf "%s is installed as of mcs-api %s, newer than the %s of this chart: keep it, and install with --set %s=false" .ours.metadata.name $theirs $ours .value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
