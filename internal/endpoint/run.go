package endpoint

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/automation"
	"gatehouse/internal/component"
	"gatehouse/internal/credential"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// maxRaces is how many lost races for records make a CONFLICT (contract X4). The last
// try locks, on this node, the records that the try before it depended on.
const maxRaces = 3

// maxTime is how long all tries together may take (contract X6), so that the
// answer is sent before the server's own timeouts. Each try also has the
// target's limit, which includes its waits and its commit.
const maxTime = 45 * time.Second

// errTime means that a run's time ended before its commit.
var errTime = fault.New(fault.ExecutionTimeout, "the run did not finish in time; nothing was done")

// errSeen means that a delivery was processed before, by another try or node.
var errSeen = errors.New("this event was processed before")

// job is one execution that was requested.
type job struct {
	config    *access.Config
	caller    access.Viewer // zero for a webhook
	runAs     string        // a user's id, "" for none
	definedBy string
	slug      string          // "" outside of an endpoint
	auth      credential.Kind // "" outside of an endpoint
	target    custom.Target
	inputs    inputs.Object
	event     *event // nil unless a webhook was delivered
	requestID string
	holder    records.Holder // of the answer; nil where the caller is not sent the outcome
	dry       bool           // commit nothing, and do not record the run
	// trier is set for what a user of the staff tries: the run may have only the
	// execution contexts that they may grant (contract A13).
	trier *access.Viewer
	draft *draft // runs in the place of what is stored; nil for none
}

// Outcome is the result of a run.
type Outcome struct {
	// Data is JSON of what the target returned. If its component returned what
	// respond() made, that is {status, headers, body}, and response has it checked.
	Data     []byte
	response *answer
	Meta     []byte // JSON object, nil for none
	// Err is nil when the run was committed. It is a *fault.Error if the caller
	// may know it: EXECUTION_ERROR or what fail() chose for a failure of the
	// target, EXECUTION_TIMEOUT, CONFLICT after three lost races, OVERLOADED where
	// resources are lacking, and the errors of the caller's own access.
	Err   error
	Tries int

	Trace   jsontext.Value // of an automation; nil for none
	Skipped Skipped
	Console []component.Line
	CPU     time.Duration
	Wall    time.Duration
	Used    Used
	UserID  user.ID // the user it ran as; "" if none was found
}

// execute runs a job until it is committed, has failed, has lost too many races or
// met too many changes of the configuration, and records the run. It returns errSeen when the event was processed
// before.
func (s *Service) execute(ctx context.Context, j *job) *Outcome {
	s.running.Add(1)
	defer s.running.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	began := s.clock.Now()
	var out *Outcome
	var cpu time.Duration
	var lost []string // the records that the previous try depended on
	for try, races, renewals := 1, 0, 0; ; try++ {
		x := &execution{s: s, j: j}
		if races == maxRaces-1 {
			x.contended = lost
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
		if errors.Is(out.Err, records.ErrReconfigured) {
			renewals++
		} else {
			races++
		}
		if races == maxRaces {
			out.Err = fault.New(fault.Conflict, "the records that this run changes were changed by others, %d times in a row; nothing was done", maxRaces)
			break
		}
		if renewals == records.MaxRenewals {
			out.Err = records.ErrUnsettled
			break
		}
		if err := s.renew(ctx, j); err != nil {
			out.Err = timeoutFault(err)
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
// one ran it, so that this is why the run failed. It returns false where that
// cannot be determined.
func (s *Service) overtaken(ctx context.Context, j *job) bool {
	if j.event == nil || j.event.KeyHash == "" {
		return false
	}
	first, err := s.store.seen(ctx, j.config.Tenant.ID, j.slug, j.event.KeyHash)
	return err == nil && first != ""
}

// renew updates a job to the current configuration.
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

// timeoutFault returns EXECUTION_TIMEOUT for a context's deadline and any other
// error unchanged: the caller hung up.
func timeoutFault(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.ExecutionTimeout, "the run did not finish in time")
	}
	return err
}

// Skipped says what a flow left out (contract F4).
type Skipped struct {
	Nodes   int
	Because string // of the first: its name and what it could not read; at most 500 bytes
}

// maxBecause is how many bytes of a reason are kept.
const maxBecause = 500

func skippedOf(res *automation.Result) Skipped {
	because := res.SkippedBecause
	if len(because) > maxBecause {
		because = strings.ToValidUTF8(because[:maxBecause-len("…")], "") + "…"
	}
	return Skipped{res.Skipped, because}
}

// String returns "" for a run that left nothing out.
func (s Skipped) String() string {
	if s.Nodes == 0 {
		return ""
	}
	return strconv.Itoa(s.Nodes) + " skipped: " + s.Because
}
