"""What Lakehub sends to other servers by HTTP: webhooks and lineage."""
