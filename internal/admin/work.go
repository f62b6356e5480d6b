package admin

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
)

// Working out a change takes a core, and on SQLite the writer, for as long as it takes. So
// that others keep most of both, after a long turn nobody gets the next for restsFor times
// as long, up to maxRest.
const (
	longTurn = 20 * time.Millisecond
	restsFor = 3
	maxRest  = 3 * time.Second
)

var errTooMany = fault.New(fault.Overloaded, "too many changes of configurations are being worked out right now; try again soon").After(2 * time.Second)

// turn waits for the turn of the request's tenant to work out a change. leave must be
// called once that is done. It returns OVERLOADED when there is none soon.
func (s *Service) turn(ctx context.Context, c *httpapi.Authed) (leave func(), err error) {
	out, err := s.planning.Enter(ctx, string(c.Config.Tenant.ID))
	if errors.Is(err, admission.ErrFull) {
		return nil, errTooMany
	}
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	return sync.OnceFunc(func() {
		took := time.Since(begun)
		if took < longTurn {
			out()
			return
		}
		time.AfterFunc(min(restsFor*took, maxRest), out)
	}), nil
}

// turnWithBody is turn for a request with a change, which it receives and decodes first:
// a change that is large or comes slowly does not hold the turn meanwhile. It also returns
// the errors of httpapi.Decode.
func (s *Service) turnWithBody(ctx context.Context, c *httpapi.Authed) (body *ConfigChange, leave func(), err error) {
	change, err := httpapi.Decode[ConfigChange](c.Call)
	if err != nil {
		return nil, nil, err
	}
	leave, err = s.turn(ctx, c)
	return &change, leave, err
}

// outcome is how a change ended.
type outcome struct {
	applied ConfigApplied
	err     error
}

// apply makes a change. One that takes longer than patience goes on beside the request,
// which is answered with 202 and the id of the work.
func (s *Service) apply(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	body, leave, err := s.turnWithBody(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	a, err := s.read(c, body)
	if err != nil {
		return httpapi.Reply{}, err
	}
	id, by := c.Config.Tenant.ID, author(c)
	w := &ongoing{}
	a.options.Pace.Progress = w.moved
	done := make(chan outcome, 1)
	running, cancel := context.WithCancel(s.base) // the change does not end with the request
	s.works.Go(func() {
		r, err := s.store.apply(running, id, by, a.spec, a.options)
		s.directory.Forget()
		is := outcome{err: a.located(err)}
		if err == nil {
			is.applied = applied(r)
		}
		done <- is
	})
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case is := <-done:
		cancel()
		return reply(c, is.applied, is.err)
	case <-timer.C:
	}
	row := workRow{id: clock.NewID(s.clock.Now()), userID: c.Viewer.UserID(), actor: c.Session.Actor(), state: Running}
	promoted, err := s.promoting.Enter(ctx, string(id))
	if err != nil {
		cancel()
		<-done
		if errors.Is(err, admission.ErrFull) {
			err = errTooMany
		}
		return httpapi.Reply{}, err
	}
	if err := s.store.beginWork(ctx, id, row); err != nil {
		promoted()
		cancel()
		<-done
		return httpapi.Reply{}, err
	}
	s.works.Go(func() {
		defer cancel()
		defer promoted()
		s.follow(id, row, w, done)
	})
	r, err := reply(c, ConfigApplied{Work: row.id, Changes: []AppliedLine{}, Gone: []string{}, Warnings: []string{}}, nil)
	r.Status = http.StatusAccepted
	return r, err
}

// ongoing is how far a change has come.
type ongoing struct {
	mu sync.Mutex
	at records.Progress
}

func (w *ongoing) moved(p records.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = p
}

func (w *ongoing) now() records.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

const (
	beatEvery = time.Second
	// lostAfter is how long a work's server may be silent before it counts as ended.
	lostAfter = 15 * time.Second
	// endWithin is how long the end of a work may take to be written.
	endWithin = 10 * time.Second
)

// follow stores how far a work has come, each second, until it ends, and then how.
func (s *Service) follow(id tenant.ID, row workRow, w *ongoing, done <-chan outcome) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	tell := func(ctx context.Context) {
		at := w.now()
		row.entity, row.done, row.total = at.Entity, at.Done, at.Total
		if err := s.store.tellWork(ctx, id, row); err != nil && s.base.Err() == nil {
			s.emit("admin.work_untold", map[string]any{"tenant": string(id), "work": row.id, "error": err.Error()})
		}
	}
	for {
		select {
		case <-beat.C:
			tell(s.base)
			continue
		case is := <-done:
			row.state = Done
			var answer any = is.applied
			switch {
			case s.base.Err() != nil && is.err != nil:
				row.state, answer = Stopped, nil
			case is.err != nil:
				row.state, answer = Failed, workError(is.err)
				if fault.CodeOf(is.err) == "" {
					s.emit("admin.work_failed", map[string]any{"tenant": string(id), "work": row.id, "error": is.err.Error()})
				}
			}
			if text, err := json.Marshal(answer); err == nil && answer != nil {
				row.answer = string(text)
			}
			ctx, cancel := context.WithTimeout(context.Background(), endWithin)
			tell(ctx)
			cancel()
			return
		}
	}
}

// work tells how far the tenant's last long change has come.
func (s *Service) work(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	row, ok, err := s.store.lastWork(ctx, c.Config.Tenant.ID)
	if err != nil {
		return httpapi.Reply{}, err
	}
	build, err := s.store.build(ctx, c.Config.Tenant.ID)
	if err != nil {
		return httpapi.Reply{}, err
	}
	is := ConfigWork{State: NoWork}
	if ok {
		is = s.workOf(c, row)
	}
	if build != nil && is.State != Running {
		is.Other, is.Percent = true, percent(build.Done, build.Total)
		if build.Walk < len(build.Work.Shapes) {
			is.Entity = build.Work.Shapes[build.Walk].Entity.Name
		}
	}
	return reply(c, is, nil)
}

func (s *Service) workOf(c *httpapi.Authed, row workRow) ConfigWork {
	is := ConfigWork{
		ID: row.id, State: row.state, Who: row.actor, Mine: row.userID == c.Viewer.UserID(), Entity: row.entity,
		Percent: percent(row.done, row.total), StartedAt: &row.startedAt,
	}
	if is.State == Running && row.silent > lostAfter {
		is.State = Stopped
	}
	if e := c.Config.Schema.Entity(row.entity); c.Viewer.AllEntityAccess() || e != nil && c.Viewer.MayReadAll(e) {
		is.Records = &WorkRecords{row.done, row.total}
	}
	if !is.Mine && !c.Viewer.TenantOwner() || row.answer == "" {
		return is
	}
	switch is.State {
	case Done:
		_ = json.Unmarshal([]byte(row.answer), &is.Applied) // what follow has encoded
	case Failed:
		_ = json.Unmarshal([]byte(row.answer), &is.Error)
	}
	return is
}

func percent(done, total int64) int {
	if total <= 0 {
		return 0
	}
	return int(min(100*done/total, 100))
}
