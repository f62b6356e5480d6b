package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	numbers "gatehouse/internal/number"
)

// unsetKey is schema.Unset, as migration 19 knows it.
const unsetKey = "\U0010FFFF"

// orderValues copies the index of field values into its new table: numbers in the
// form that is in their order, and rows for records that have no value. A change of
// configuration that is being prepared begins its walk anew.
func orderValues(ctx context.Context, tx Tx) error {
	if err := orderKeys(ctx, tx); err != nil {
		return err
	}
	// An index in use stands under its field's name or a name of its own; rows
	// under other names than those, and those of lineages, belong to changes that are
	// being prepared, or to what is being removed.
	const inUse = `FROM fields f JOIN entities e ON e.tenant_id = f.tenant_id AND e.name = f.entity
		WHERE f.tenant_id = v.tenant_id AND COALESCE(NULLIF(e.stored_as, ''), e.name) = v.entity AND COALESCE(NULLIF(f.index_name, ''), f.name) = v.field`
	const columns = `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique) `
	statements := []string{
		columns + `SELECT v.tenant_id, v.entity, v.field, CASE WHEN v.value >= '` + unsetKey + `' OR EXISTS (SELECT 1 ` + inUse + ` AND f.type = 'number')
			THEN COALESCE((SELECT n.ordered FROM ordered_keys n WHERE n.value = v.value), v.value) ELSE v.value END, v.reach, v.record_created_at, v.is_unique
			FROM field_values_old v WHERE EXISTS (SELECT 1 ` + inUse + `)
			OR EXISTS (SELECT 1 FROM entities l WHERE l.tenant_id = v.tenant_id AND l.lineage = v.field)`,
		`DROP TABLE field_values_old`,
		`DROP TABLE ordered_keys`,
		`CREATE UNIQUE INDEX field_values_unique ON field_values (tenant_id, entity, field, value) WHERE is_unique = 1`,
		`UPDATE builds SET walk = 0, after_at = 0, done = 0, top_at = COALESCE((SELECT max(created_at) FROM records r WHERE r.tenant_id = builds.tenant_id), 0)`,
	}
	// A field that is unique and indexed had no rows of ways; no field had rows without a value.
	const indexed = ` FROM fields f JOIN entities e ON e.tenant_id = f.tenant_id AND e.name = f.entity
		JOIN records r ON r.tenant_id = f.tenant_id AND r.entity = COALESCE(NULLIF(e.stored_as, ''), e.name) `
	const name = `COALESCE(NULLIF(f.index_name, ''), f.name)`
	const everybody = `JOIN value_of v ON v.tenant_id = r.tenant_id AND v.entity = r.entity AND v.field = ` + name + ` AND v.record_created_at = r.created_at `
	const fill = `INSERT INTO value_of SELECT tenant_id, entity, field, record_created_at, value FROM field_values WHERE reach = '' `
	statements = append(statements,
		columnTypes[tx.Dialect().Engine].Replace(`CREATE TABLE value_of (tenant_id {text} NOT NULL, entity {text} NOT NULL, field {text} NOT NULL,
			record_created_at BIGINT NOT NULL, value {text} NOT NULL, PRIMARY KEY (tenant_id, entity, field, record_created_at)) {clustered}`),
		fill,
		columns+`SELECT r.tenant_id, r.entity, `+name+`, '`+unsetKey+`', '', r.created_at, 0`+indexed+`
			WHERE f.is_indexed = 1 AND NOT EXISTS (SELECT 1 FROM value_of v WHERE v.tenant_id = r.tenant_id AND v.entity = r.entity
			AND v.field = `+name+` AND v.record_created_at = r.created_at)`,
		fill+`AND value = '`+unsetKey+`' ON CONFLICT DO NOTHING`)
	for _, way := range []struct{ reach, join, where string }{
		{`'o:' || r.owner_id`, ``, ``},
		{`'r:' || r.owner_role`, ``, ` AND r.owner_role <> ''`},
		{`'s:' || s.principal`, `JOIN shares s ON s.tenant_id = r.tenant_id AND s.entity = r.entity AND s.record_id = r.record_id `, ``},
		{`'m:' || m.rule_id`, `JOIN rule_matches m ON m.tenant_id = r.tenant_id AND m.record_created_at = r.created_at `, ``},
	} {
		statements = append(statements, columns+`SELECT r.tenant_id, r.entity, `+name+`, v.value, `+way.reach+`, r.created_at, 0`+indexed+everybody+way.join+`
			WHERE f.is_indexed = 1 AND e.controlled_by = ''`+way.where+` ON CONFLICT DO NOTHING`)
	}
	statements = append(statements, columns+`SELECT r.tenant_id, r.entity, `+name+`, v.value, 'p:' || p.value, r.created_at, 0`+indexed+everybody+`
		JOIN fields c ON c.tenant_id = e.tenant_id AND c.entity = e.name AND c.name = e.controlled_by
		JOIN value_of p ON p.tenant_id = r.tenant_id AND p.entity = r.entity AND p.field = COALESCE(NULLIF(c.index_name, ''), c.name) AND p.record_created_at = r.created_at
		WHERE f.is_indexed = 1 AND e.controlled_by <> '' ON CONFLICT DO NOTHING`,
		`DROP TABLE value_of`)
	if tx.Dialect().Engine == Postgres { // or its plans are made for an empty table until it is analyzed by itself
		statements = append(statements, `ANALYZE field_values`)
	}
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// orderKeys makes the table ordered_keys of values and their new keys: of fields of
// numbers, and of texts that begin as the key of what is not set.
func orderKeys(ctx context.Context, tx Tx) error {
	if _, err := tx.Exec(ctx, columnTypes[tx.Dialect().Engine].Replace(`CREATE TABLE ordered_keys (value {text} NOT NULL PRIMARY KEY, ordered {text} NOT NULL)`)); err != nil {
		return err
	}
	// Texts that begin with unsetKey have another key, as schema.Field.IndexKey says.
	err := distinct(ctx, tx, `SELECT DISTINCT v.value FROM field_values_old v WHERE v.value > $1 AND v.value >= '`+unsetKey+`' ORDER BY v.value LIMIT $2`, func(value string) (string, bool) {
		sum := sha256.Sum256([]byte(value))
		return "\U0010FFFE…" + hex.EncodeToString(sum[:]), true
	})
	if err != nil {
		return err
	}
	return distinct(ctx, tx, `SELECT DISTINCT v.value FROM field_values_old v JOIN fields f ON f.tenant_id = v.tenant_id
			AND COALESCE(NULLIF(f.index_name, ''), f.name) = v.field AND f.type = 'number' WHERE v.value > $1 ORDER BY v.value LIMIT $2`, func(value string) (string, bool) {
		f, ok := numbers.Parse([]byte(value))
		return numbers.Ordered(f), ok
	})
}

// distinct stores a new key for each value that a statement selects, page by page.
func distinct(ctx context.Context, tx Tx, sql string, key func(value string) (string, bool)) error {
	for last := ""; ; {
		var page []string
		err := tx.Query(ctx, sql, func(r Row) error { page = append(page, r.Text(0)); return nil }, last, rekeyAtOnce)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, value := range page {
			ordered, ok := key(value)
			if !ok {
				continue
			}
			if _, err := tx.Exec(ctx, `INSERT INTO ordered_keys (value, ordered) VALUES ($1, $2)`, value, ordered); err != nil {
				return err
			}
		}
		last = page[len(page)-1]
	}
}
