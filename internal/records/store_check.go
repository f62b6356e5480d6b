package records

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
)

// Check returns a CONFLICT, with counts, if stored records do not fit work. It
// only reads, and takes no locks, for use in a dry run.
func Check(ctx context.Context, h db.Handle, work *access.Work, pace Pace) error {
	for _, s := range work.Shapes {
		c := &checking{h: h, shape: s, misfits: map[string]int64{}, seen: map[string]map[uint64]int64{}}
		if err := c.run(ctx, pace); err != nil {
			return err
		}
	}
	return nil
}

// checking counts the records that conflict with a shape. It keeps a hash of
// each value of a unique field.
type checking struct {
	h       db.Handle
	shape   *access.Shape
	misfits map[string]int64
	seen    map[string]map[uint64]int64
	total   int64
}

func (c *checking) run(ctx context.Context, pace Pace) error {
	all, err := count(ctx, c.h, c.shape.Entity.StoredAs())
	if err != nil {
		return err
	}
	for after, more := int64(0), true; more; {
		var list []row
		size := 0
		err := c.h.Query(ctx, `SELECT created_at, record_id, owner_id, owner_role, `+c.h.Dialect().JSONText("data", "data_bytes")+` FROM records WHERE tenant_id = $1 AND entity = $2
			AND created_at > $3 ORDER BY created_at LIMIT `+strconv.Itoa(walkPage), func(r db.Row) error {
			list = append(list, rowOf(r))
			if size += len(list[len(list)-1].data); size > walkBytes {
				return errEnough
			}
			return nil
		}, c.shape.Entity.StoredAs(), after)
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		more = err != nil || len(list) == walkPage
		for i := range list {
			after = list[i].createdAt
			c.total++
			if err := c.record(ctx, &list[i]); err != nil {
				return err
			}
		}
		if pace.Progress != nil && all > walkPage {
			pace.Progress(Progress{c.shape.Entity.Name, min(c.total, all), all})
		}
	}
	return c.refusal()
}

func (c *checking) record(ctx context.Context, rec *row) error {
	made := newShaped(c.shape, &standing{id: rec.id, data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole})
	return made.each(func(x *access.Index, f *schema.Field, v jsontext.Value) error {
		if schema.IsNull(v) && !x.Needed {
			return nil
		}
		if _, reason := f.Canonical(v); x.Check && reason != "" {
			c.misfits[f.Name]++
			return nil
		}
		if x.Check && f.Type == schema.Reference {
			there, err := exists(ctx, c.h, named{f.TargetAs(), schema.Unquote(v)}, "")
			if err != nil {
				return err
			}
			if !there && (x.Needed || !x.Back || len(schema.Unquote(v)) != idLength) {
				c.misfits[f.Name]++
			}
			if !there {
				return nil
			}
		}
		key, ok := uniqueKey(f, v)
		if !ok || !x.Rows {
			return nil
		}
		if c.seen[f.Name] == nil {
			c.seen[f.Name] = map[uint64]int64{}
		}
		h := fnv.New64a()
		h.Write([]byte(key))
		c.seen[f.Name][h.Sum64()]++
		return nil
	})
}

func (c *checking) refusal() error {
	entity := c.shape.Entity.Name
	for _, x := range c.shape.Fields {
		if n := c.misfits[x.Field]; n > 0 {
			if x.Needed {
				return orphaned(entity, c.shape.Entity.Field(x.Field), n, c.total)
			}
			return unfit(entity, c.shape.Entity.Field(x.Field), n, c.total)
		}
	}
	for _, x := range c.shape.Fields {
		doubled := int64(0)
		for _, n := range c.seen[x.Field] {
			if n > 1 {
				doubled += n
			}
		}
		if doubled > 0 {
			return notUnique(entity, c.shape.Entity.Field(x.Field), doubled, c.total)
		}
	}
	return nil
}
