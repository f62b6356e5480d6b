package audit

import (
	"context"
	"slices"

	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

const newBlocks = `SELECT last_id FROM audit_blocks WHERE tenant_id = $1 AND day = $2 AND last_id >= $3 AND last_id < $4 ORDER BY last_id DESC LIMIT $5`

// tailIDs bounds how many blocks are looked at for new ones; a tenant writes at
// most some twenty a second.
const tailIDs = 4000

// written returns the decompressed heads of the blocks with an entry between two
// ids that are not in seen, at most tailBlocks, the newest, and adds them to seen.
// skipped is at least how many entries it left out.
func (s adminStore) written(ctx context.Context, t tenant.ID, from, below string, seen map[string]bool) (heads []storedHead, skipped int64, err error) {
	first, last := db.DayOf(timeOfID(from)), db.DayOf(timeOfID(below))
	for day := last; day >= first; day-- {
		var fresh []string
		err := s.d.Days().Read(ctx, t, day, func(h db.Querier) error {
			return h.Query(ctx, newBlocks, func(r db.Row) error {
				if id := r.Text(0); !seen[id] {
					fresh = append(fresh, id)
				}
				return nil
			}, int64(day), from, below, tailIDs)
		})
		if err != nil {
			return nil, 0, err
		}
		if over := len(fresh) - (tailBlocks - len(heads)); over > 0 {
			for _, id := range fresh[len(fresh)-over:] {
				seen[id] = true
			}
			fresh, skipped = fresh[:len(fresh)-over], skipped+int64(over)
		}
		for ids := range slices.Chunk(fresh, headsAtOnce) {
			args := []any{int64(day)}
			for i := range headsAtOnce {
				args = append(args, ids[min(i, len(ids)-1)])
			}
			err := s.d.Days().Read(ctx, t, day, func(h db.Querier) error {
				return h.Query(ctx, headsOf, func(r db.Row) error {
					head, err := unpack(r.Bytes(1))
					if err != nil {
						s.problem(t, day.String(), err)
					} else {
						heads = append(heads, storedHead{r.Text(0), head})
					}
					seen[r.Text(0)] = true
					return nil
				}, args...)
			})
			if err != nil {
				return nil, 0, err
			}
		}
	}
	return heads, skipped, nil
}
