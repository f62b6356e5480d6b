package db

import "strings"

var sqliteDialect = Dialect{
	Engine:     SQLite,
	JSONText:   func(doc, _ string) string { return doc },
	JSONRemove: func(doc, key string) string { return `json_remove(` + doc + `, '$."' || ` + key + ` || '"')` },
	Greatest:   func(a, b string) string { return "max(" + a + ", " + b + ")" },
	// SQLite's clock has milliseconds; rounding keeps 0.123 s from becoming
	// 122999 µs.
	Now: "(CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000)",
}

var postgresDialect = Dialect{
	Engine:     Postgres,
	ForUpdate:  " FOR UPDATE",
	ForShare:   " FOR SHARE",
	JSON:       "::jsonb",
	JSONText:   postgresJSONText,
	JSONRemove: func(doc, key string) string { return "(" + doc + " - " + key + "::text)" },
	Greatest:   func(a, b string) string { return "GREATEST(" + a + ", " + b + ")" },
	Now:        "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}

// postgresJSONText is JSONText for JSONB. Data of unknown weight is returned
// unchanged if it is small (768 bytes hold at most 64 numbers), converted once
// more if it is of medium size, and traversed if it is large, because PostgreSQL
// cannot build a text over 1 GB. JSONB || '{}' is the document before
// compression.
func postgresJSONText(doc, weight string) string {
	return strings.NewReplacer("{doc}", doc, "{weight}", weight, "{size}", "pg_column_size("+doc+" || '{}')", "{foreign}", foreignNumber).Replace(
		`CASE WHEN {weight} > 0 OR {size} < 768 THEN {doc}
		WHEN {size} < 16384 AND octet_length(CAST({doc} AS TEXT)) < 16777216 THEN {doc}
		WHEN NOT jsonb_path_exists({doc}, {foreign}) AND octet_length(CAST({doc} AS TEXT)) < 16777216 THEN {doc}
		ELSE (SELECT COALESCE(jsonb_object_agg(m.key, m.value), '{}') FROM jsonb_each({doc}) m
			WHERE NOT jsonb_path_exists(m.value, {foreign}) AND octet_length(CAST(m.value AS TEXT)) < 16777216) END`)
}

// foreignNumber is a JSON path that finds the numbers outside the range of an
// IEEE double.
const foreignNumber = `'$.** ? (@.type() == "number" && (@ >= 1.8e308 || @ <= -1.8e308 || (@ < 2e-324 && @ > -2e-324 && @ != 0)))'`
