package endpoint

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/automation"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
	"gatehouse/internal/mark"
	"gatehouse/internal/records"
)

// maxTries is how many lost races make a CONFLICT (decisions 2.2, 2.31). The
// last try has the endpoint for itself on this node.
const maxTries = 3

// maxTime is what all tries together may take: the answer must be out before
// the server's own time-outs.
const maxTime = 45 * time.Second

// errSeen says that a delivery was processed before, by another try or node.
var errSeen = errors.New("this event was processed before")

// job is one execution that was asked for.
type job struct {
	config    *access.Config
	caller    access.Viewer // the zero one for a webhook
	runAs     string        // a user's id, "" for none
	definedBy string
	slug      string // "" outside of an endpoint
	auth      string // an audit label; "" outside of an endpoint
	target    custom.Target
	inputs    inputs.Object
	event     *event // nil where no webhook was delivered
	requestID string
	holder    records.Holder // of the answer; nil where none is made of the outcome
	// dry runs it and keeps nothing.
	dry bool
}

// Outcome is how a run ended.
type Outcome struct {
	Data []byte // JSON
	Meta []byte // JSON object, nil for none
	// Err is the failure, a *fault.Error where the caller may know it.
	Err   error
	Tries int

	Trace   jsontext.Value // of an automation; nil for none
	Console []component.Line
	CPU     time.Duration
	Wall    time.Duration
	UserID  string // as whom it ran; "" where that was not found
}

// execute runs a job until it is committed, failed, or lost too many races, and
// keeps the run. errSeen when its event turned out to be processed before.
func (s *Service) execute(ctx context.Context, j *job) *Outcome {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	began := s.clock.Now()
	var out *Outcome
	var cpu time.Duration
	for try := 1; ; try++ {
		out = s.try(ctx, j, try)
		out.Tries = try
		cpu += out.CPU
		if out.Err != nil && s.overtaken(ctx, j) {
			out.Err = errSeen
		}
		if !errors.Is(out.Err, records.ErrLost) {
			break
		}
		if try == maxTries {
			out.Err = fault.New(fault.Conflict, "the records that this run changes were changed by others, %d times in a row; nothing was done", maxTries)
			break
		}
		if err := s.renew(ctx, j); err != nil {
			out.Err = err
			break
		}
	}
	out.CPU = cpu
	if !j.dry {
		s.history.add(s.entry(j, out, began))
	}
	return out
}

// overtaken reports whether another node processed the job's event while this
// one ran it: then that is why it failed. Where that cannot be found out, the
// failure stands as it is.
func (s *Service) overtaken(ctx context.Context, j *job) bool {
	if j.event == nil || j.event.KeyHash == "" {
		return false
	}
	first, err := s.store.seen(ctx, j.config.Tenant.ID, j.slug, j.event.KeyHash)
	return err == nil && first != ""
}

// renew brings a job to the configuration of now.
func (s *Service) renew(ctx context.Context, j *job) error {
	config, err := s.dir.Current(ctx, j.config.Tenant.ID)
	if err != nil || config == j.config {
		return err
	}
	if j.caller.UserID() != "" {
		if j.caller, err = s.dir.Renew(ctx, j.caller); err != nil {
			return err
		}
		config = j.caller.Config()
	}
	j.config = config
	return nil
}

// try runs a job once and commits it.
func (s *Service) try(ctx context.Context, j *job, try int) *Outcome {
	leave := s.lanes.enter(j.config.Tenant.ID+"/"+j.slug, try == maxTries)
	defer leave()
	begun := time.Now()
	x := &execution{s: s, j: j, unit: s.records.Begin(j.config)}
	mark.At("run.begun")
	out := x.run(ctx)
	mark.At("run.ended")
	if out.Err == nil && j.holder != nil { // before the commit, for it is too late after it
		out.Err = j.holder.Hold(len(out.Data))
	}
	if out.Err == nil && !j.dry {
		out.Err = s.store.commit(ctx, x.unit, j, clock.Micros(s.clock.Now()))
	}
	if ended := ctx.Err(); ended != nil && out.Err != nil && fault.CodeOf(out.Err) == "" {
		out.Err = over(ended)
	}
	if out.Err != nil {
		out.Data, out.Meta = nil, nil // of a run that did nothing
	}
	out.Wall = time.Since(begun)
	return out
}

// execution is one try: a unit of work and what runs on it.
type execution struct {
	s       *Service
	j       *job
	catalog *catalog
	unit    *records.Unit

	actorKnown bool
	actorIs    access.Viewer
	actorErr   error

	console []component.Line
	cpu     time.Duration
	userID  string
	failure *failure // the last of a component
}

// run runs the job's target.
func (x *execution) run(ctx context.Context) *Outcome {
	out := &Outcome{}
	var err error
	if x.catalog, err = x.s.catalog(ctx, x.j.config); err == nil {
		if x.j.target.Kind == custom.ToComponent {
			out.Data, err = x.component(ctx, x.j.target.Name, x.j.inputs.JSON())
		} else {
			err = x.automation(ctx, out)
		}
	}
	out.Err, out.Console, out.CPU, out.UserID = err, x.console, x.cpu, x.userID
	return out
}

// over is the error of a job whose time is over, or whose caller hung up.
func over(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.ExecutionTimeout, "the run did not finish in time")
	}
	return err
}

// actor is as whom a target runs that does not say.
func (x *execution) actor(ctx context.Context) func() (access.Viewer, error) {
	return func() (access.Viewer, error) {
		if !x.actorKnown {
			x.actorIs, x.actorErr = x.s.actor(ctx, x.j)
			x.actorKnown = true
		}
		return x.actorIs, x.actorErr
	}
}

// as notes as whom the job's target runs, for the run's entry.
func (x *execution) as(viewer access.Viewer) {
	if x.userID == "" {
		x.userID = viewer.UserID()
	}
}

// component runs a logic component on the unit. Its inputs are checked.
func (x *execution) component(ctx context.Context, name string, given jsontext.Value) ([]byte, error) {
	c := x.catalog.Components[name]
	if c == nil {
		return nil, errNoTarget(custom.Target{Kind: custom.ToComponent, Name: name})
	}
	viewer, err := x.s.under(ctx, x.j.config, c.Context, x.actor(ctx))
	if err != nil {
		return nil, err
	}
	x.as(viewer)
	program, err := x.s.programs.of(ctx, x.j.config.Tenant.ID, c)
	if err != nil {
		return nil, err
	}
	mark.At("run.component")
	host, leave := x.host(viewer, component.ErrHostBytes)
	defer leave()
	res, err := program.Run(ctx, component.Run{
		Tenant: x.j.config.Tenant.ID, Inputs: given, Ctx: x.context(viewer), Timeout: c.Timeout(),
		Host: host,
	})
	x.console = append(x.console, res.Console...)
	x.cpu += res.CPU
	if err != nil {
		return nil, err
	}
	if res.Failed != nil {
		return nil, x.failed(name, res.Failed)
	}
	return res.Value, nil
}

// failed is a component's failure as the caller is told: only what fail()
// chose has a status of its own. Where in the source it was is for the author.
func (x *execution) failed(name string, f *component.Failure) error {
	if f.Chosen {
		return f.Fault()
	}
	x.failure = &failure{
		fault: &fault.Error{Code: fault.Code(f.Code), Message: f.Message, Details: f.Details},
		where: name + ":" + strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Column), stack: f.Stack,
	}
	return x.failure
}

// failure is a fault with what only the run's entry says.
type failure struct {
	fault        *fault.Error
	where, stack string
}

func (f *failure) Error() string { return f.fault.Error() }
func (f *failure) Unwrap() error { return f.fault }

// automation runs a flow on the unit.
func (x *execution) automation(ctx context.Context, out *Outcome) error {
	f := x.catalog.flows[x.j.target.Name]
	if f == nil {
		return errNoTarget(x.j.target)
	}
	compiled, err := f.ready()
	if err != nil {
		return err
	}
	viewer, err := x.s.under(ctx, x.j.config, f.Context, x.actor(ctx))
	if err != nil {
		return err
	}
	x.as(viewer)
	// What the flow calls runs as the flow does, where it does not say.
	x.actorIs, x.actorErr, x.actorKnown = viewer, nil, true
	if len(x.catalog.Components) > 0 { // a cold start's time is not the flow's
		if err := x.s.engine.Ready(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, component.DefaultTimeout)
	defer cancel()
	host, leave := x.host(viewer, automation.ErrRecords)
	defer leave()
	given := automation.Run{Inputs: x.j.inputs, Host: host}
	if e := x.j.event; e != nil {
		given.Event = &automation.Event{ID: e.shownID(), Kind: e.Kind}
	}
	res, err := compiled.Run(ctx, given)
	out.Trace = res.Trace.JSON()
	if err != nil {
		return x.placed(err)
	}
	out.Data = res.Outputs
	out.Meta = append(strconv.AppendInt([]byte(`{"nodesExecuted":`), int64(res.NodesExecuted), 10), `,"durationMs":`...)
	out.Meta = append(strconv.AppendInt(out.Meta, res.Duration.Milliseconds(), 10), '}')
	return nil
}

// placed gives a flow's failure the place in the source of the component that
// failed in it, if one did: nothing in a flow can catch that.
func (x *execution) placed(err error) error {
	var f *fault.Error
	if x.failure == nil || !errors.As(err, &f) {
		return err
	}
	return &failure{fault: f, where: x.failure.where, stack: x.failure.stack}
}

// context is a component's ctx (decisions 4, "JavaScript").
func (x *execution) context(viewer access.Viewer) []byte {
	text := append(make([]byte, 0, 256), `{"user":{"id":`...)
	text = quote(text, viewer.UserID())
	text = quote(append(text, `,"email":`...), viewer.Email())
	text = quote(append(text, `},"tenant":`...), x.j.config.Tenant.ID)
	text = quote(append(text, `,"requestId":`...), x.j.requestID)
	text = append(text, `,"event":`...)
	if e := x.j.event; e == nil {
		text = append(text, "null"...)
	} else {
		text = quote(append(text, `{"id":`...), e.shownID())
		text = quote(append(text, `,"kind":`...), e.Kind)
		text = append(text, '}')
	}
	return append(text, '}')
}

// quote appends s as JSON; what is no UTF-8 in it becomes U+FFFD.
func quote(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		out, _ = jsontext.AppendQuote(dst, string([]rune(s)))
	}
	return out
}
