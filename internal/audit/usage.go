package audit

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/internal/tenant"
)

const (
	// maxEndpoints is how many endpoints and keys of a tenant one process counts
	// separately in one minute; the others count together.
	maxEndpoints = 512
	// maxUsageRows bounds the rows that wait to be written, of all tenants.
	// Beyond it the database has been unavailable for long, and callers wait.
	maxUsageRows = 64 << 10
	// otherEndpoint counts requests that belong to no endpoint or are beyond
	// maxEndpoints.
	otherEndpoint = "other"

	minute = int64(time.Minute / time.Microsecond)
)

// usageKey is the key of usage_minutes or, if key is set, of usage_keys; the
// minute is its first microsecond.
type usageKey struct {
	tenant   tenant.ID
	minute   int64
	endpoint string // "" of a row of a key
	key      string // the id of an API key
}

// usageRow is what is added to one row of usage_minutes.
type usageRow struct {
	usageKey
	usageSums
}

// usageSums are what is counted. errors has failed (5xx) and limited (429).
type usageSums struct {
	requests, errors, failed, limited, latencyMicros int64

	buckets [len(bucketLimits) + 1]int64 // each answer counts in one
}

// bucketLimits are the largest durations of the buckets; the last bucket has
// the slower answers.
var bucketLimits = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
}

// add adds other sums.
func (s *usageSums) add(o *usageSums) {
	s.requests += o.requests
	s.errors += o.errors
	s.failed += o.failed
	s.limited += o.limited
	s.latencyMicros += o.latencyMicros
	for i, n := range o.buckets {
		s.buckets[i] += n
	}
}

// count adds one request.
func (s *usageSums) count(ev *Event) {
	s.requests++
	if ev.Status >= 400 {
		s.errors++
	}
	if ev.Status >= 500 {
		s.failed++
	}
	if ev.Status == http.StatusTooManyRequests {
		s.limited++
	}
	d := max(ev.Duration, 0)
	s.latencyMicros += d.Microseconds()
	i := 0
	for i < len(bucketLimits) && d > bucketLimits[i] {
		i++
	}
	s.buckets[i]++
}

// longestAnswer bounds the last bucket where a quantile falls into it.
const longestAnswer = 30 * time.Second

// quantile returns the duration that the share q of the answers did not exceed,
// as exactly as the buckets tell: it divides the bucket evenly. It returns 0 for
// no answers.
func (s *usageSums) quantile(q float64) time.Duration {
	total := int64(0)
	for _, n := range s.buckets {
		total += n
	}
	rank, seen := q*float64(total), int64(0)
	for i, n := range s.buckets {
		if n == 0 || float64(seen+n) < rank {
			seen += n
			continue
		}
		low, high := time.Duration(0), longestAnswer
		if i > 0 {
			low = bucketLimits[i-1]
		}
		if i < len(bucketLimits) {
			high = bucketLimits[i]
		}
		return low + time.Duration(float64(high-low)*(rank-float64(seen))/float64(n))
	}
	return 0
}

// usage counts requests until they are written. Its owner must guard it.
type usage struct {
	rows      map[usageKey]*usageRow // of this minute and the previous one, including written ones
	endpoints map[tenant.ID]int      // how many rows a tenant has in this minute and the previous one
	dirty     []*usageRow            // rows with something to write
	newest    int64                  // the latest minute seen
}

func newUsage() usage {
	return usage{rows: map[usageKey]*usageRow{}, endpoints: map[tenant.ID]int{}}
}

// count adds one request to its endpoint and, if it has one, its API key.
func (u *usage) count(ev *Event) {
	at := ev.Start.UnixMicro()
	at -= at % minute
	u.add(usageKey{tenant: ev.Tenant, minute: at, endpoint: cmp.Or(ev.Endpoint, otherEndpoint)}, ev)
	if ev.APIKeyID != "" {
		u.add(usageKey{tenant: ev.Tenant, minute: at, key: ev.APIKeyID}, ev)
	}
}

func (u *usage) add(key usageKey, ev *Event) {
	row := u.row(key)
	if row.requests == 0 {
		u.dirty = append(u.dirty, row)
	}
	row.count(ev)
}

func (u *usage) row(key usageKey) *usageRow {
	if key.minute > u.newest {
		u.newest = key.minute
		u.forget()
	}
	if row := u.rows[key]; row != nil {
		return row
	}
	if len(key.endpoint) > maxEndpoint || len(key.key) > maxShort || u.endpoints[key.tenant] >= maxEndpoints {
		if key.endpoint, key.key = otherOf(key); u.rows[key] != nil {
			return u.rows[key]
		}
	}
	// A row outlives its event, so it must not refer to the texts of a request.
	key.endpoint, key.key = strings.Clone(storable(key.endpoint)), strings.Clone(storable(key.key))
	if row := u.rows[key]; row != nil {
		return row
	}
	row := &usageRow{usageKey: key}
	u.rows[key] = row
	u.endpoints[key.tenant]++
	return row
}

// otherOf returns the endpoint or the key that a row beyond the bounds counts
// for.
func otherOf(key usageKey) (endpoint, id string) {
	if key.key != "" {
		return "", otherEndpoint
	}
	return otherEndpoint, ""
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
			return cmp.Or(cmp.Compare(a.minute, b.minute), strings.Compare(a.endpoint, b.endpoint), strings.Compare(a.key, b.key))
		})
	}
	return taken
}

// usageMerge adds rows of usage up, by the beginning of their span and their
// endpoint or key.
type usageMerge map[usageKey]*usageSums

func (m usageMerge) add(start int64, name string, s *usageSums) {
	key := usageKey{minute: start, endpoint: name}
	if m[key] == nil {
		m[key] = &usageSums{}
	}
	m[key].add(s)
}

// rows returns the sums in the order of their keys.
func (m usageMerge) rows() []usageRow {
	list := make([]usageRow, 0, len(m))
	for key, sums := range m {
		list = append(list, usageRow{usageKey: key, usageSums: *sums})
	}
	slices.SortFunc(list, func(a, b usageRow) int {
		return cmp.Or(cmp.Compare(a.minute, b.minute), strings.Compare(a.endpoint, b.endpoint))
	})
	return list
}
