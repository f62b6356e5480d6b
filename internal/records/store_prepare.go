package records

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/background"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/failpoint"
	"gatehouse/internal/tenant"
)

// maxProbes bounds the walks that one step tries, because most find no records.
const maxProbes = 50

// Pace controls how a build proceeds.
type Pace struct {
	// Records is the number of records of one step; 0 adapts it to the time
	// they take.
	Records int
	// Progress, if not nil, is called after each step.
	Progress func(Progress)
	// Step, if not nil, is called before each step. It is for tests.
	Step func() error
}

// Progress is the progress of a build.
type Progress struct {
	Entity      string // "" while owners' roles are being changed
	Done, Total int64
}

const (
	firstStep = 64
	stepTime  = 5 * time.Millisecond // approximate time of one step
	stepBytes = 256 << 10            // of the data of a step's records
)

// leastStep is the least number of records of a step, if they have no more than stepBytes, however long it takes. On
// PostgreSQL most of a step are round trips, which fewer records do not shorten, and it holds up writers of these
// records alone.
var leastStep = map[db.Engine]int{db.SQLite: 8, db.Postgres: 64}

// Prepare makes work ready, continuing where an earlier call stopped.
// Afterwards the transition that needs it is short, as long as nothing else
// changes. Prepare returns CONFLICT while other work is being prepared, and
// ErrGone when the build was undone meanwhile.
func Prepare(ctx context.Context, h db.Handle, clk clock.Clock, work *access.Work, pace Pace) error {
	p := &preparation{h: h, work: work, pace: pace, limit: firstStep}
	if err := p.begin(ctx, clk); err != nil {
		return err
	}
	failpoint.At("build.begun")
	for {
		begun := time.Now()
		done, err := p.step(ctx)
		if err != nil {
			return err
		}
		if done {
			failpoint.At("build.walked")
			break
		}
		if err := background.Rest(ctx, time.Since(begun)); err != nil {
			return err
		}
	}
	return p.settle(ctx)
}

// configure changes what writers write. It has no actor, because this is not a
// configuration change that the history should show.
func configure(ctx context.Context, h db.Handle, clk clock.Clock, fn func(tx tenant.ConfigTx, keep func()) error) error {
	return tenant.Configure(ctx, h, "", clk, func(tx tenant.ConfigTx, log *tenant.History) error { return fn(tx, log.Keep) })
}

type preparation struct {
	h      db.Handle
	work   *access.Work
	pace   Pace
	limit  int
	id     string
	config *access.Config
}

// begin stores the work, so that every writer maintains it from now on.
func (p *preparation) begin(ctx context.Context, clk clock.Clock) error {
	total, err := p.total(ctx)
	if err != nil {
		return err
	}
	return configure(ctx, p.h, clk, func(tx tenant.ConfigTx, keep func()) error {
		b, err := access.LockBuild(ctx, tx)
		if err != nil {
			return err
		}
		if b != nil && b.Work.Key() == p.work.Key() {
			p.id = b.ID
			return nil
		}
		if b != nil {
			if err := giveWay(ctx, tx, b); err != nil {
				return err
			}
		}
		config, err := access.Load(ctx, tx)
		if err != nil {
			return err
		}
		if err := name(ctx, tx, p.work, config); err != nil {
			return err
		}
		b = &access.Build{ID: strconv.FormatInt(config.Tenant.Version, 10), Work: p.work, Total: total}
		if b.Top, err = lastCreated(ctx, tx, config); err != nil {
			return err
		}
		p.id = b.ID
		keep()
		return access.PutBuild(ctx, tx, b)
	})
}

// total estimates how many records the walks will visit.
func (p *preparation) total(ctx context.Context) (total int64, err error) {
	for _, s := range p.work.Shapes {
		n, err := count(ctx, p.h, s.Entity.StoredAs())
		if err != nil {
			return 0, err
		}
		total += n
	}
	for _, l := range p.work.Lineages {
		n, err := count(ctx, p.h, l.Entity)
		if err != nil {
			return 0, err
		}
		total += n
	}
	for _, m := range p.work.Moves {
		for _, u := range m.Users {
			for _, e := range p.work.Entities {
				n, err := atMost(ctx, p.h, math.MaxInt32, `entity = $2 AND owner_id = $3`, e, u)
				if err != nil {
					return 0, err
				}
				total += int64(n)
			}
		}
	}
	return total, nil
}

// lastCreated returns the created_at of the tenant's newest record.
func lastCreated(ctx context.Context, q db.Querier, config *access.Config) (top int64, err error) {
	for _, e := range config.Schema.Entities {
		err := q.Query(ctx, `SELECT created_at FROM records WHERE tenant_id = $1 AND entity = $2 ORDER BY created_at DESC LIMIT 1`,
			func(r db.Row) error { top = max(top, r.Int(0)); return nil }, e.StoredAs())
		if err != nil {
			return 0, err
		}
	}
	return top, nil
}

// step visits some records in one short transaction.
func (p *preparation) step(ctx context.Context) (done bool, err error) {
	var at *access.Build
	var took time.Duration
	err = p.short(ctx, func(tx db.Tx, b *access.Build) error {
		begun := time.Now()
		at = b
		if !b.Ready() {
			if err := p.visit(ctx, tx, b); err != nil {
				return err
			}
		}
		took = time.Since(begun)
		failpoint.At("build.visited")
		return access.MoveBuild(ctx, tx, b)
	})
	if err != nil {
		return false, err
	}
	failpoint.At("build.stepped")
	switch {
	case took > 2*stepTime:
		p.limit = max(p.limit/2, leastStep[p.h.Dialect().Engine])
	case took < stepTime:
		p.limit = min(p.limit*3/2, walkPage)
	}
	if p.pace.Progress != nil {
		now := Progress{Done: min(at.Done, at.Total), Total: at.Total}
		if at.Walk < len(at.Work.Shapes) {
			now.Entity = at.Work.Shapes[at.Walk].Entity.Name
		} else if n := at.Walk - len(at.Work.Shapes); n < len(at.Work.Lineages) {
			now.Entity = at.Work.Lineages[n].Entity
		}
		p.pace.Progress(now)
	}
	return at.Ready(), nil
}

// short runs fn in a transaction that holds the build and the configuration.
func (p *preparation) short(ctx context.Context, fn func(tx db.Tx, b *access.Build) error) error {
	if p.pace.Step != nil {
		if err := p.pace.Step(); err != nil {
			return err
		}
	}
	for range MaxRenewals {
		err := fenced(ctx, p.h, p.config, func(tx db.Tx) error {
			b, err := access.LockBuild(ctx, tx)
			if err != nil {
				return err
			}
			if b == nil || b.ID != p.id {
				return ErrGone
			}
			return fn(tx, b)
		})
		if !errors.Is(err, errStale) {
			return err
		}
		if p.config, err = access.Load(ctx, p.h); err != nil {
			return err
		}
	}
	return ErrGone
}

// fenced runs fn in a transaction under configuration c. It returns errStale
// when c is not current.
func fenced(ctx context.Context, h db.Handle, c *access.Config, fn func(tx db.Tx) error) error {
	if c == nil {
		return errStale
	}
	return h.Write(ctx, func(tx db.Tx) error {
		version, err := tenant.Fence(ctx, tx)
		if err != nil {
			return err
		}
		if version != c.Tenant.Version {
			return errStale
		}
		return fn(tx)
	})
}

// visit continues the build's walks until it has visited enough.
func (p *preparation) visit(ctx context.Context, tx db.Tx, b *access.Build) error {
	left := extent{cmp.Or(p.pace.Records, p.limit), stepBytes}
	for probes := 0; left.records > 0 && left.bytes > 0 && probes < maxProbes && !b.Ready(); probes++ {
		last, visited, err := p.walk(ctx, tx, b, left)
		if err != nil {
			return err
		}
		left.records -= visited.records
		left.bytes -= visited.bytes
		b.Done += int64(visited.records)
		if b.After = last; last == 0 {
			b.Walk++
		}
	}
	return nil
}

// walk visits the next records of the build's current walk.
func (p *preparation) walk(ctx context.Context, tx db.Tx, b *access.Build, limit extent) (last int64, visited extent, err error) {
	at := b.Walk
	if at < len(b.Work.Shapes) {
		return shapePage(ctx, tx, p.config, b.Work.Shapes[at], b.After, b.Top, limit)
	}
	at -= len(b.Work.Shapes)
	if at < len(b.Work.Lineages) {
		return lineagePage(ctx, tx, p.config, b.Work.Lineages[at], b.After, b.Top, limit)
	}
	at -= len(b.Work.Lineages)
	for _, m := range b.Work.Moves {
		if n := len(m.Users) * len(b.Work.Entities); at >= n {
			at -= n
			continue
		}
		u, name := m.Users[at/len(b.Work.Entities)], b.Work.Entities[at%len(b.Work.Entities)]
		e := p.config.Schema.StoredAs(name)
		if e == nil {
			return 0, extent{}, nil // the type is gone, and so are its records
		}
		return rolePage(ctx, tx, p.config, e, `owner_id = $5`, u, m.Token, b.After, b.Top, limit)
	}
	return 0, extent{}, nil
}
