package audit

import (
	"context"

	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

const (
	usageTotals = `CAST(SUM(requests) AS BIGINT), CAST(SUM(errors) AS BIGINT), CAST(SUM(failed) AS BIGINT), CAST(SUM(limited) AS BIGINT),
	CAST(SUM(latency_us) AS BIGINT), CAST(SUM(le_1) AS BIGINT), CAST(SUM(le_2) AS BIGINT), CAST(SUM(le_5) AS BIGINT), CAST(SUM(le_10) AS
	BIGINT), CAST(SUM(le_25) AS BIGINT), CAST(SUM(le_50) AS BIGINT), CAST(SUM(le_100) AS BIGINT), CAST(SUM(le_250) AS BIGINT),
	CAST(SUM(le_500) AS BIGINT), CAST(SUM(le_1000) AS BIGINT), CAST(SUM(le_2500) AS BIGINT), CAST(SUM(le_5000) AS BIGINT),
	CAST(SUM(slower) AS BIGINT)`

	usageByEndpoint = `SELECT (minute - $2) / $4, endpoint, ` + usageTotals + ` FROM usage_minutes
		WHERE tenant_id = $1 AND minute >= $2 AND minute < $3 GROUP BY 1, 2`
	usageByKey = `SELECT (minute - $2) / $4, key_id, ` + usageTotals + ` FROM usage_keys
		WHERE tenant_id = $1 AND minute >= $2 AND minute < $3 GROUP BY 1, 2`
)

// usage calls each for the sums of each point of a span and each endpoint or key.
func (s adminStore) usage(ctx context.Context, t tenant.ID, span usageSpan, keys bool, each func(point int, name string, sums *usageSums)) error {
	sql := usageByEndpoint
	if keys {
		sql = usageByKey
	}
	return s.d.For(t).Query(ctx, sql, func(r db.Row) error {
		sums := scanSums(r, 2)
		each(int(r.Int(0)), r.Text(1), &sums)
		return nil
	}, span.from, span.end(), span.width)
}

// called reports whether the API was called, by anything that usage still has.
func (s adminStore) called(ctx context.Context, t tenant.ID) (some bool, err error) {
	err = s.d.For(t).Query(ctx, `SELECT 1 FROM usage_keys WHERE tenant_id = $1 LIMIT 1`, func(db.Row) error {
		some = true
		return nil
	})
	return some, err
}
