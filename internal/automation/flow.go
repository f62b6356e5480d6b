package automation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/admission"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
)

// Host performs operations on records and runs components for a flow. An error that
// is a *fault.Error ends the flow as EXECUTION_ERROR with its message (see
// Flow.Run); any other error ends the flow and is returned, wrapped.
type Host interface {
	// Record performs one operation on records, with the rights of the user that the
	// flow runs as. It returns a record's JSON object for Get, Create and Update, null
	// for a Get of one that is absent or hidden, an object with records and hasMore
	// for List, {"id": …, "deleted": true} for Delete, the share for Share, {"user": …,
	// "role": …, "deleted": true} for Unshare. The result must be valid JSON and must
	// not change afterwards.
	Record(ctx context.Context, call RecordCall) (jsontext.Value, error)
	// Component runs a logic component. inputs is a JSON object that is not yet
	// checked against what the component declares. It returns what the component's
	// handler returned.
	Component(ctx context.Context, name string, inputs jsontext.Value) (jsontext.Value, error)
}

// Op is the operation of a RecordCall.
type Op string

// The operations on records.
const (
	Get    Op = "get"
	List   Op = "list"
	Create Op = "create"
	Update Op = "update"
	Delete Op = "delete"
	Upsert Op = "upsert"
	// Share and Unshare are of shares of a record.
	Share   Op = "share"
	Unshare Op = "unshare"
)

// RecordCall is one operation on records of one entity type.
type RecordCall struct {
	Op     Op
	Entity string
	// ID is the record's, for all but List, Create and Upsert; it is not empty.
	ID string
	// By is the unique field by which an Upsert finds its record.
	By string
	// Fields are what Create, Update and Upsert set. Their values are valid JSON.
	Fields []inputs.Member
	// Whole, if set, are the Fields of a Create as one value: an object, or a list of
	// objects for several records, of which all are created or none. The answer to a
	// list is a list.
	Whole jsontext.Value
	// User or Role, of which one is set, is whom the record is shared with, for
	// Share and Unshare; Access is read or edit, for Share.
	User, Role, Access string
	// Where are the conditions of a List: values that fields equal, or objects of operators
	// and operands. No value is null or a list.
	Where []inputs.Member
	// Sort is the order of a List, as contract P13 has it; "" is newest first.
	Sort string
	// Search has the words of a List, as contract P15 has them; "" is no search.
	Search string
	// Limit of a List, 1 to 200.
	Limit int
	// Room is the greatest length of the answer in bytes. A List returns the records
	// that fit. The host must return ErrRecords for an answer that does not fit,
	// before it builds that.
	Room int
}

// ErrRecords means that a run would receive more than MaxRecords; it is an
// EXECUTION_ERROR.
var ErrRecords = fault.New(fault.ExecutionError, "a run may be handed at most %d MiB of records", MaxRecords>>20)

// Event identifies a webhook's delivery. An empty text is null in the flow.
type Event struct{ ID, Kind string }

// Run has the parameters of one execution of a flow.
type Run struct {
	// Inputs are the checked inputs, as inputs.FromJSON returns them. A declared one
	// that is missing is null.
	Inputs inputs.Object
	// Event is nil when the run is not for a webhook.
	Event *Event
	Host  Host
	// Work is the flow's share of processor time. Flow.Run pauses it during calls of
	// the host.
	Work *admission.Work
	// Memory is charged for the values of the run; nil means no bound. The run is
	// OVERLOADED when the charge is refused.
	Memory *admission.Charge
}

// Result is the result of a run.
type Result struct {
	// Outputs is the JSON object of the declared outputs; an output that was not set is
	// null. It is nil when the flow failed.
	Outputs jsontext.Value
	// NodesExecuted counts finished executions (contract F5).
	NodesExecuted int
	// Skipped counts the nodes that could not read what they needed (contract F4);
	// SkippedBecause says of the first which it was and what it could not read.
	Skipped        int
	SkippedBecause string
	Duration       time.Duration
	Trace          Trace
}

// Run executes the flow, until ctx's deadline. The Result is never nil; its trace
// exists also when the flow failed.
//
// Run returns a *fault.Error for a flow that failed: EXECUTION_TIMEOUT after ctx's
// deadline; what a fail node, or fail() in a component, chose; OVERLOADED when
// Memory is refused; the host's OVERLOADED, SERVICE_UNAVAILABLE, EXECUTION_TIMEOUT
// and INTERNAL unchanged; and otherwise EXECUTION_ERROR, with details {"node": …}
// and, for an error of the host, its code and details. Any other error is the
// host's, or that of a cancelled ctx.
func (f *Flow) Run(ctx context.Context, given Run) (*Result, error) {
	start := time.Now()
	r := &run{ctx: ctx, host: given.Host, share: given.Work, memory: given.Memory, work: MaxWork, room: MaxRecords, returned: MaxReturned, slots: make([]slot, f.scope.slots), outputs: make([]any, len(f.output))}
	r.trace = Trace{Steps: make([]Step, 0, f.size), last: start}
	err := r.begin(f, given)
	if err == nil {
		err = r.list(f.nodes)
	}
	result := &Result{NodesExecuted: r.count, Skipped: r.skipped, SkippedBecause: r.because}
	if err == nil {
		result.Outputs, err = r.result(f)
	}
	result.Duration = time.Since(start)
	result.Trace = r.trace
	return result, err
}

// run is the state of one execution; it belongs to one goroutine.
type run struct {
	ctx      context.Context
	host     Host
	share    *admission.Work
	memory   *admission.Charge
	slots    []slot
	outputs  []any
	elements []element // of the conditions' predicates
	work     int       // bytes left of MaxWork
	room     int       // bytes left of MaxRecords
	returned int       // bytes left of MaxReturned
	steps    int       // that conditions took
	started  int       // nodes, skipped ones included
	count    int       // nodes that finished
	skipped  int       // nodes
	because  string    // the first of them was skipped
	depth    int       // of nested nodes
	failed   bool      // the run's error was returned by fail
	trace    Trace
}

// slot has a name's value. A node that reads a slot before it is set is skipped.
type slot struct {
	value any
	set   bool
}

// begin fills the slots that can be read from the start.
func (r *run) begin(f *Flow, given Run) error {
	all := &object{members: make([]entry, len(f.inputs))}
	for i := range f.inputs {
		name := f.inputs[i].Name
		all.members[i].name = name
		text, ok := jsontext.Value(nil), false
		if i < len(given.Inputs) && given.Inputs[i].Name == name {
			text, ok = given.Inputs[i].Value, true
		} else {
			text, ok = given.Inputs.Get(name)
		}
		if ok {
			v, err := fromJSON(text)
			if err != nil {
				return fmt.Errorf("input %s: %w", name, err)
			}
			all.members[i].value = v
		}
		r.slots[i] = slot{all.members[i].value, true}
	}
	r.slots[f.scope.allInputs] = slot{all, true}
	if f.scope.usesEvent {
		var event Event
		if given.Event != nil {
			event = *given.Event
		}
		r.slots[f.scope.event] = slot{&object{members: []entry{{"id", textOrNull(event.ID)}, {"kind", textOrNull(event.Kind)}}}, true}
	}
	for _, i := range f.scope.vars {
		r.slots[i].set = true
	}
	return nil
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// list executes nodes one after another until one fails.
func (r *run) list(nodes []*instruction) error {
	for _, n := range nodes {
		if err := r.node(n); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) node(n *instruction) error {
	if err := r.checkpoint(); err != nil {
		return r.fail(ended(err))
	}
	if r.started++; r.started > MaxExecutions {
		return r.fail(fault.New(fault.ExecutionError, "%s: the flow executes more than %d nodes", n.name, MaxExecutions).With("node", n.name))
	}
	at := r.trace.open(n, r.depth)
	result, err := n.do.execute(r)
	var skip *skipped
	switch {
	case err == nil:
		r.count++
		if n.slot != noResult {
			r.slots[n.slot] = slot{result, true}
		}
		r.trace.close(at, result, nil, nil)
	case errors.As(err, &skip) && !n.must:
		if r.skipped++; r.skipped == 1 {
			r.because = n.name + ": " + skip.Error()
		}
		r.trace.close(at, nil, skip, nil)
		err = nil
	default:
		err = r.failure(n, err)
		r.trace.close(at, nil, nil, err)
	}
	return err
}

// callHost calls the host. The run's share of the processor is free for others during
// the call.
func (r *run) callHost(call func() (jsontext.Value, error)) (jsontext.Value, error) {
	r.share.Pause()
	answer, err := call()
	if resumed := r.share.Resume(); err == nil {
		err = resumed
	}
	return answer, err
}

// checkpoint yields the processor to other runs when it is time. It returns the
// context's error when that has ended, and OVERLOADED when memory is refused.
func (r *run) checkpoint() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if err := r.hold(0); err != nil {
		return err
	}
	return r.share.Yield()
}

var errMemory = fault.New(fault.Overloaded, "Automations use too much memory at the moment. Try again soon.").After(time.Second)

// hold charges the run's memory for everything that it received and built, and for
// more bytes. It returns OVERLOADED when that is refused. The charge only grows: no
// value is known to be unused before the run ends.
func (r *run) hold(more int) error {
	if r.memory == nil || r.memory.Reach(int64(MaxWork-r.work+MaxRecords-r.room+MaxReturned-r.returned+more)) {
		return nil
	}
	return errMemory
}

// step counts n steps of conditions. It returns a mistake when the run has taken more
// than MaxSteps, and the errors of checkpoint.
func (r *run) step(n int) error {
	before := r.steps
	if r.steps += n; r.steps > MaxSteps {
		return mistakef("the conditions take more than %d steps", MaxSteps)
	}
	if before>>10 != r.steps>>10 {
		return r.checkpoint()
	}
	return nil
}

// spend takes n bytes of MaxWork. It returns errLong when there are fewer left.
func (r *run) spend(n int) error {
	if r.work -= n; r.work < 0 {
		return errLong
	}
	return nil
}

// fail returns err as the run's error, which enclosing nodes return unchanged.
func (r *run) fail(err error) error {
	r.failed = true
	return err
}

// ended returns the error of a run whose context has ended.
func ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.ExecutionTimeout, "The flow ran out of time.")
	}
	return err
}

// failure converts a node's error to the flow's.
func (r *run) failure(n *instruction, err error) error {
	if r.failed { // a node inside this one
		return err
	}
	if over := r.ctx.Err(); over != nil {
		return r.fail(ended(over))
	}
	var f *fault.Error
	var m mistake
	var skip *skipped
	switch {
	case errors.As(err, &f):
		return r.fail(fromHost(n, f))
	case errors.As(err, &m):
	case errors.As(err, &skip):
		m = mistake(skip.Error())
	case errors.Is(err, errLong):
		m = mistake(fmt.Sprintf("the values are too large: a run may use %d MiB", MaxWork>>20))
	case errors.Is(err, errDeep):
		m = mistake(errDeep.Error())
	default:
		return r.fail(fmt.Errorf("automation: node %s: %w", n.name, err))
	}
	return r.fail(fault.New(fault.ExecutionError, "%s: %s", n.name, string(m)).With("node", n.name))
}

// fromHost converts a fault of the host, or of a fail node, to the flow's
// (contract X5).
func fromHost(n *instruction, f *fault.Error) error {
	if f.Status != 0 { // fail chose it
		return f
	}
	switch f.Code {
	case fault.Overloaded, fault.ServiceUnavailable, fault.ExecutionTimeout, fault.Internal:
		return f
	}
	own := fault.New(fault.ExecutionError, "%s: %s", n.name, f.Message).With("node", n.name)
	for name, detail := range f.Details {
		if name != "node" {
			own.Details[name] = detail
		}
	}
	if f.Code != fault.ExecutionError {
		own.Details["code"] = string(f.Code)
	}
	return own
}
