"""The MCP server: what a coding agent calls. The `mcp` package is imported nowhere but here."""
