package endpoint

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/automation"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/credential"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
	"gatehouse/internal/mark"
	"gatehouse/internal/records"
)

// maxTries is how many lost races make a CONFLICT. The last try has the records
// that it lost a race for to itself on this node.
const maxTries = 3

// maxTime is what all tries together may take: the answer must be out before
// the server's own time-outs. Each try has the target's own limit, its commit
// and what it waits for included.
const maxTime = 45 * time.Second

// errTime says that a run's time was over before it was committed.
var errTime = fault.New(fault.ExecutionTimeout, "the run did not finish in time; nothing was done")

// errSeen says that a delivery was processed before, by another try or node.
var errSeen = errors.New("this event was processed before")

// job is one execution that was asked for.
type job struct {
	config    *access.Config
	caller    access.Viewer // the zero one for a webhook
	runAs     string        // a user's id, "" for none
	definedBy string
	slug      string          // "" outside of an endpoint
	auth      credential.Kind // "" outside of an endpoint
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
	var lost []string // the records that the try before depended on
	for try := 1; ; try++ {
		x := &execution{s: s, j: j}
		if try == maxTries {
			x.wanted = lost
		}
		out, lost = x.try(ctx)
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

// execution is one try: a unit of work and what runs on it.
type execution struct {
	s       *Service
	j       *job
	catalog *catalog
	unit    *records.Unit
	// wanted are the records that the try has to itself until it ends.
	wanted []string
	// until is when the target's time is over, the commit included.
	until time.Time

	actorKnown bool
	actorIs    access.Viewer
	actorErr   error

	console []component.Line
	cpu     time.Duration
	userID  string
	failure *failure // the last of a component
}

// try runs the job once and commits it. touched are the records that it read
// by id or changed.
func (x *execution) try(ctx context.Context) (out *Outcome, touched []string) {
	begun := time.Now()
	out = &Outcome{}
	release, err := x.prepare(ctx)
	if err == nil {
		defer release()
		x.unit = x.s.records.Begin(x.j.config)
		defer x.unit.Close()
		mark.At("run.begun")
		err = x.run(ctx, out)
		mark.At("run.ended")
		out.Console, out.CPU, out.UserID = x.console, x.cpu, x.userID
		touched = x.touched()
	}
	if ended := ctx.Err(); ended != nil && err != nil && fault.CodeOf(err) == "" {
		err = over(ended)
	}
	if err == nil && x.j.holder != nil { // before the commit, for it is too late after it
		err = x.j.holder.Hold(len(out.Data))
	}
	if err == nil && !x.j.dry {
		err = x.commit(ctx, touched)
	}
	if err != nil {
		out.Err, out.Data, out.Meta = err, nil, nil // of a run that did nothing
	}
	out.Wall = time.Since(begun)
	return out, touched
}

// prepare finds what there is to run and waits for the records wanted, at most
// as long as the target may take.
func (x *execution) prepare(ctx context.Context) (release func(), err error) {
	if x.catalog, err = x.s.catalog(ctx, x.j.config); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, x.limit())
	defer cancel()
	release, err = x.s.locks.acquire(ctx, x.wanted, true)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errTime
	}
	return release, err
}

// limit is what the job's target may take.
func (x *execution) limit() time.Duration {
	if c := x.catalog.Components[x.j.target.Name]; c != nil && x.j.target.Kind == custom.ToComponent {
		return c.Timeout()
	}
	return component.DefaultTimeout
}

// touched names the records that the unit depends on, for their locks.
func (x *execution) touched() []string {
	names := x.unit.Touched()
	for i, name := range names {
		names[i] = x.j.config.Tenant.ID + "/" + name
	}
	return names
}

// commit does what the run did. It shares the locks of the records that it
// depends on with others, unless it has those it wants to itself: who has locks
// waits for no more.
func (x *execution) commit(ctx context.Context, touched []string) error {
	if !x.unit.Changed() && x.j.event == nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, x.until)
	defer cancel()
	if len(x.wanted) == 0 {
		release, err := x.s.locks.acquire(ctx, touched, false)
		if errors.Is(err, context.DeadlineExceeded) {
			return errTime
		}
		if err != nil {
			return err
		}
		defer release()
	}
	return x.s.store.commit(ctx, x.unit, x.j, clock.Micros(x.s.clock.Now()))
}

// run runs the job's target.
func (x *execution) run(ctx context.Context, out *Outcome) (err error) {
	if x.j.target.Kind != custom.ToComponent {
		return x.automation(ctx, out)
	}
	out.Data, err = x.component(ctx, x.j.target.Name, x.j.inputs.JSON())
	return err
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
	host, forget := x.host(viewer, component.ErrHostBytes)
	defer forget()
	res, err := program.Run(ctx, component.Run{
		Tenant: x.j.config.Tenant.ID, Inputs: given, Ctx: x.context(viewer), Timeout: c.Timeout(),
		Host: host,
	})
	x.until = time.Now().Add(c.Timeout() - res.Wall)
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

// automation runs a flow on the unit, in a place of its tenant's. A component
// in it takes a place of the engine's beside that, never the other way round.
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
	leave, err := x.s.flows.Enter(ctx, x.j.config.Tenant.ID)
	if errors.Is(err, admission.ErrFull) {
		err = fault.New(fault.Overloaded, "Too many automations are running. Try again soon.").After(time.Second)
	}
	if err != nil {
		return err
	}
	defer leave()
	until := time.Now().Add(component.DefaultTimeout)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	host, forget := x.host(viewer, automation.ErrRecords)
	defer forget()
	work, err := x.s.engine.Cores().Start(ctx, x.j.config.Tenant.ID)
	if err != nil {
		return over(err)
	}
	defer work.Stop()
	memory := x.s.engine.Memory().Charge(x.j.config.Tenant.ID)
	defer memory.Release()
	given := automation.Run{Inputs: x.j.inputs, Host: host, Work: work, Memory: &memory}
	if e := x.j.event; e != nil {
		given.Event = &automation.Event{ID: strings.ToValidUTF8(e.shownID(), "\uFFFD"), Kind: strings.ToValidUTF8(e.Kind, "\uFFFD")}
	}
	res, err := compiled.Run(ctx, given)
	x.until = until // not that of a component in it
	out.Trace = res.Trace.JSON()
	if fault.CodeOf(err) == fault.ExecutionTimeout && work.Starved() {
		err = errStarved
	}
	if err != nil {
		return x.placed(err)
	}
	out.Data = res.Outputs
	out.Meta = append(strconv.AppendInt([]byte(`{"nodesExecuted":`), int64(res.NodesExecuted), 10), `,"durationMs":`...)
	out.Meta = append(strconv.AppendInt(out.Meta, res.Duration.Milliseconds(), 10), '}')
	return nil
}

// errStarved says that a run was not done in time because others computed.
var errStarved = fault.New(fault.Overloaded, "The service is too busy to finish this in time. Try again soon.").After(2 * time.Second)

// placed gives a flow's failure the place in the source of the component that
// failed in it, if one did: nothing in a flow can catch that.
func (x *execution) placed(err error) error {
	var f *fault.Error
	if x.failure == nil || !errors.As(err, &f) {
		return err
	}
	return &failure{fault: f, where: x.failure.where, stack: x.failure.stack}
}
