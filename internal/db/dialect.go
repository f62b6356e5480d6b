package db

var sqliteDialect = Dialect{
	Engine:     SQLite,
	JSONRemove: func(doc, key string) string { return `json_remove(` + doc + `, '$."' || ` + key + ` || '"')` },
	Greatest:   func(a, b string) string { return "max(" + a + ", " + b + ")" },
	// SQLite's clock has milliseconds; rounding keeps 0.123 s from being cut to 122999 µs.
	Now: "(CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000)",
}

var postgresDialect = Dialect{
	Engine:     Postgres,
	ForUpdate:  " FOR UPDATE",
	ForShare:   " FOR SHARE",
	JSON:       "::jsonb",
	JSONRemove: func(doc, key string) string { return "(" + doc + " - " + key + "::text)" },
	Greatest:   func(a, b string) string { return "GREATEST(" + a + ", " + b + ")" },
	Now:        "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}
