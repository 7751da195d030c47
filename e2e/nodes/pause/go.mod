module tributary.dev/e2e/nodes/pause

go 1.26.0
