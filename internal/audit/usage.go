package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gatehouse/internal/tenant"
)

const (
	// maxEndpoints is how many endpoints of a tenant one process counts
	// separately in one minute; the others count together.
	maxEndpoints = 256
	// maxUsageRows bounds the rows that wait to be written, of all tenants.
	// Beyond it the database has been unavailable for long, and callers wait.
	maxUsageRows = 64 << 10
	// otherEndpoint counts requests that belong to no endpoint.
	otherEndpoint = "other"

	minute = int64(time.Minute / time.Microsecond)
)

// usageKey is the key of usage_minutes; the minute is its first microsecond.
type usageKey struct {
	tenant   tenant.ID
	minute   int64
	endpoint string
}

// usageRow is what is added to one row of usage_minutes.
type usageRow struct {
	usageKey
	requests, errors, latencyMicros int64
	buckets                         [len(bucketLimits) + 1]int64 // each answer counts in one
}

// bucketLimits are the largest durations of the buckets; the last bucket has
// the slower answers.
var bucketLimits = [...]time.Duration{
	5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2500 * time.Millisecond,
}

// usage counts requests until they are written. Its owner must guard it.
type usage struct {
	rows      map[usageKey]*usageRow // of this minute and the previous one, including written ones
	endpoints map[tenant.ID]int      // how many rows a tenant has
	dirty     []*usageRow            // rows with something to write
	newest    int64                  // the latest minute seen
}

func newUsage() usage {
	return usage{rows: map[usageKey]*usageRow{}, endpoints: map[tenant.ID]int{}}
}

// count adds one request.
func (u *usage) count(ev *Event) {
	row := u.row(ev)
	if row.requests == 0 {
		u.dirty = append(u.dirty, row)
	}
	row.requests++
	if ev.Status >= 400 {
		row.errors++
	}
	d := max(ev.Duration, 0)
	row.latencyMicros += d.Microseconds()
	i := 0
	for i < len(bucketLimits) && d > bucketLimits[i] {
		i++
	}
	row.buckets[i]++
}

func (u *usage) row(ev *Event) *usageRow {
	micros := ev.Start.UnixMicro()
	key := usageKey{tenant: ev.Tenant, minute: micros - micros%minute, endpoint: ev.Endpoint}
	if key.minute > u.newest {
		u.newest = key.minute
		u.forget()
	}
	if row := u.rows[key]; row != nil {
		return row
	}
	if key.endpoint == "" || len(key.endpoint) > maxEndpoint || u.endpoints[key.tenant] >= maxEndpoints {
		key.endpoint = otherEndpoint
		if row := u.rows[key]; row != nil {
			return row
		}
	}
	// A row outlives its event, so it must not refer to the texts of a request.
	key.endpoint = strings.Clone(storable(key.endpoint))
	if row := u.rows[key]; row != nil {
		return row
	}
	row := &usageRow{usageKey: key}
	u.rows[key] = row
	u.endpoints[key.tenant]++
	return row
}

// forget drops the rows of past minutes that have nothing to write.
func (u *usage) forget() {
	for key, row := range u.rows {
		if row.requests == 0 && key.minute < u.newest {
			delete(u.rows, key)
			if u.endpoints[key.tenant]--; u.endpoints[key.tenant] == 0 {
				delete(u.endpoints, key.tenant)
			}
		}
	}
}

// take returns what there is to write, by tenant, and resets it; it leaves the
// tenants for which except is true. Rows of one tenant are in the order of
// their keys, in which every node locks them.
func (u *usage) take(except func(tenant tenant.ID) bool) map[tenant.ID][]usageRow {
	taken := map[tenant.ID][]usageRow{}
	left := u.dirty[:0]
	for _, row := range u.dirty {
		if except(row.tenant) {
			left = append(left, row)
			continue
		}
		taken[row.tenant] = append(taken[row.tenant], *row)
		*row = usageRow{usageKey: row.usageKey}
	}
	clear(u.dirty[len(left):])
	u.dirty = left
	for _, rows := range taken {
		slices.SortFunc(rows, func(a, b usageRow) int {
			return cmp.Or(cmp.Compare(a.minute, b.minute), strings.Compare(a.endpoint, b.endpoint))
		})
	}
	return taken
}
