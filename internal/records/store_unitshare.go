package records

import (
	"context"
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
)

// unitShare is the state, within a unit, of the share of a record with a
// principal.
type unitShare struct {
	Share
	stored bool // whether there is a stored share
}

// ShareWith shares a record. It returns the share as Share.AppendJSON writes it.
func (p *UnitSession) ShareWith(ctx context.Context, entity, id string, with With, level access.Level) (Record, error) {
	r, err := p.s.sharable(entity)
	if err != nil {
		return nil, err
	}
	if err := checkGiven(with, level); err != nil {
		return nil, err
	}
	share, _, err := p.s.shareNamed(ctx, p, r, id, with, level)
	if err != nil {
		return nil, err
	}
	return share.AppendJSON(nil), nil
}

// UnshareWith removes a share.
func (p *UnitSession) UnshareWith(ctx context.Context, entity, id string, with With) (Record, error) {
	r, err := p.s.sharable(entity)
	if err != nil {
		return nil, err
	}
	if err := checkWith(with); err != nil {
		return nil, err
	}
	return p.s.unshareNamed(ctx, p, r, id, with)
}

// ---- view ----

func (p *UnitSession) principal(ctx context.Context, with With) (string, error) {
	return p.s.principalOf(ctx, p.u.q, with)
}

func (p *UnitSession) shareWith(ctx context.Context, e *schema.Entity, rec *row, to string) (share Share, n int, err error) {
	if rec.version != 0 {
		if share, n, err = shareWith(ctx, p.u.q, p.u.config, e, rec.id, to); err != nil {
			return Share{}, 0, err
		}
	}
	own := p.u.shares[ref{e.Name, rec.id}]
	for _, sh := range own {
		switch {
		case sh.Access != "" && !sh.stored:
			n++
		case sh.Access == "" && sh.stored:
			n--
		}
	}
	if sh, ok := own[to]; ok {
		share = sh.Share
	}
	return share, n, nil
}

func (p *UnitSession) putShare(ctx context.Context, r *access.EntityRights, rec *row, to string, share Share) error {
	return p.changeShare(ctx, r, rec, to, share, func(ctx context.Context, v *txView, rec *row) error {
		was, n, err := v.shareWith(ctx, r.Entity, rec, to)
		if err == nil && was.Access == "" && n >= MaxShares {
			err = ErrLost
		}
		if err != nil {
			return err
		}
		return v.putShare(ctx, r, rec, to, share)
	})
}

func (p *UnitSession) dropShare(ctx context.Context, r *access.EntityRights, rec *row, to string) error {
	return p.changeShare(ctx, r, rec, to, Share{}, func(ctx context.Context, v *txView, rec *row) error {
		was, _, err := v.shareWith(ctx, r.Entity, rec, to)
		if err == nil && was.Access == "" {
			err = ErrLost
		}
		if err != nil {
			return err
		}
		return v.dropShare(ctx, r, rec, to)
	})
}

// changeShare adds a change of a share to the unit; do makes it in the
// transaction. From then on the unit has its own version of the record, and
// reads by id use the unit's shares.
func (p *UnitSession) changeShare(ctx context.Context, r *access.EntityRights, rec *row, to string, share Share,
	do func(context.Context, *txView, *row) error,
) error {
	at := ref{r.Entity.Name, rec.id}
	was, known := p.u.shares[at][to]
	if !known && rec.version != 0 {
		stored, _, err := shareWith(ctx, p.u.q, p.u.config, r.Entity, rec.id, to)
		if err != nil {
			return err
		}
		was.stored = stored.Access != ""
	}
	c := change{ref: at, needs: p.need(r, rec, access.Delete), do: func(ctx context.Context, rp *replay) error {
		return do(ctx, &txView{s: p.s, tx: rp.tx, indexing: &rp.indexing}, rp.record(r.Entity, at))
	}}
	if err := p.u.add(c, len(rec.data)+maxShareBytes); err != nil {
		return err
	}
	if p.u.shares[at] == nil {
		p.u.shares[at] = map[string]unitShare{}
	}
	p.u.shares[at][to] = unitShare{Share: share, stored: was.stored}
	p.u.put(r.Entity, rec)
	return nil
}

// byShares reports whether a share that the unit made reaches a record, and
// returns the part of a scope that must be checked in the store: the scope
// without the shares that the unit made, changed or removed.
func (u *Unit) byShares(at ref, scope *access.Scope) (left *access.Scope, reached bool) {
	own := u.shares[at]
	if len(own) == 0 {
		return scope, false
	}
	left = &access.Scope{}
	for _, w := range scope.Ways {
		if w.Kind != access.ByShare {
			left.Ways = append(left.Ways, w)
			continue
		}
		names := slices.Clone(w.Names)
		w.Names = slices.DeleteFunc(names, func(name string) bool {
			share, ok := own[name]
			reached = reached || ok && (share.Access == access.Edit || share.Access == access.ReadOnly && !w.EditOnly)
			return ok
		})
		if len(w.Names) > 0 {
			left.Ways = append(left.Ways, w)
		}
	}
	return left, reached
}
