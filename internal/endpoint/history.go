package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/background"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/credential"
	"gatehouse/internal/custom"
	"gatehouse/internal/failpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// The values of Run.Status.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	// Duplicate is a run whose event another node committed first; it did
	// nothing.
	Duplicate = "duplicate"
)

// Cancelled is the error code of a run whose caller hung up.
const Cancelled = "CANCELLED"

// Run is one execution as it is kept, for 30 days (contract X8). Times are
// microseconds, UTC where they are instants.
type Run struct {
	ID        string
	StartedAt int64
	Took, CPU int64
	Target    custom.Target
	Slug      string          // "" outside of an endpoint
	Auth      credential.Kind // "" outside of an endpoint
	UserID    user.ID         // the user it ran as
	RequestID string
	EventID   string // of a webhook delivery
	Status    string
	ErrorCode string
	Error     string // for the author, with the position in the source
	Tries     int
	Trace     string // JSON list; "" for a component
	Skipped   Skipped
	EventKind string // the provider's; "" in token mode
	Used      string // JSON of keptUsed; "" for a run of an earlier version
	Console   string // JSON list of {level, text}

	tenant tenant.ID
	// payload is what is needed to run a failed delivery again.
	payload []byte
}

// entry returns the record of a run.
func (s *Service) entry(j *job, out *Outcome, began time.Time) *Run {
	r := &Run{
		ID: clock.NewID(began), StartedAt: clock.Micros(began), Took: out.Wall.Microseconds(), CPU: out.CPU.Microseconds(),
		Target: j.target, Slug: j.slug, Auth: j.auth, UserID: out.UserID, RequestID: j.requestID, Status: Succeeded,
		Tries: out.Tries, Trace: string(out.Trace), Skipped: out.Skipped, Console: consoleJSON(out.Console), Used: out.Used.json(nil), tenant: j.config.Tenant.ID,
	}
	if j.event != nil {
		r.EventID, r.EventKind = j.event.ID, storedKind(j.event.Kind)
	}
	switch {
	case out.Err == nil:
	case errors.Is(out.Err, errSeen):
		r.Status = Duplicate
	default:
		r.Status = Failed
		r.ErrorCode, r.Error = Describe(out.Err)
		r.Used = out.Used.json(Details(out.Err))
		r.Error = strings.ReplaceAll(r.Error, "\x00", "\uFFFD") // a PostgreSQL text cannot contain it
		if j.event != nil {
			s.pack(r, &delivery{j.inputs, *j.event})
		}
	}
	return r
}

func consoleJSON(lines []component.Line) string {
	if len(lines) == 0 {
		return "[]"
	}
	b, _ := json.Marshal(lines) // cannot fail: plain texts
	return string(b)
}

// Describe returns an error as the author may see it. The server's log has the
// causes that the author may not know.
func Describe(err error) (code, text string) {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
	case errors.Is(err, context.Canceled):
		return Cancelled, "the caller hung up before the run had ended"
	default:
		return string(fault.Internal), "the run could not be finished"
	}
	text = f.Message
	if own := (*failure)(nil); errors.As(err, &own) {
		text = fmt.Sprintf("%s (%s)", text, own.where)
		if own.stack != "" {
			text += "\n" + strings.TrimRight(own.stack, "\n")
		}
	}
	return string(f.Code), text
}

// maxDetails is how many bytes of an error's details are kept with a run.
const maxDetails = 8 << 10

// Details returns the details of an error, which say for instance which fields were
// wrong, as they are kept with a run: a JSON object, nil where there are none. Of more
// than maxDetails it returns {"truncated": true, "beginning": "…"}.
func Details(err error) json.RawMessage {
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Details) == 0 {
		return nil
	}
	text, err := json.Marshal(f.Details)
	if err != nil {
		return nil
	}
	if len(text) > maxDetails {
		beginning := strings.ToValidUTF8(string(text[:maxDetails]), "")
		text, _ = json.Marshal(map[string]any{"truncated": true, "beginning": beginning}) // cannot fail: a text
	}
	return text
}

// ErrorDetails returns the details of a failed run's error, as Details does; nil also for
// a run of an earlier version.
func (r *Run) ErrorDetails() json.RawMessage {
	kept := keptUsed{}
	if r.Used == "" || json.Unmarshal([]byte(r.Used), &kept) != nil {
		return nil
	}
	return kept.Details
}

const (
	// maxHeld bounds the bytes of runs that are queued; no tenant has more of
	// them than it leaves free.
	maxHeld    = 128 << 20
	maxBatch   = 256     // runs in one transaction
	maxWritten = 1 << 20 // bytes of runs after which a transaction takes no more
	flushRuns  = 50 * time.Millisecond
	maxPatient = time.Second // how long a call waits for room
	runTries   = 6           // of a transaction, within about 3 s
)

// history writes runs in the background, several in one transaction.
type history struct {
	store runStore
	emit  func(string, map[string]any)
	queue *background.Batcher[*Run]
	held  *admission.Budget // by tenant

	mu         sync.Mutex
	room       chan struct{} // closed and replaced when there is room again
	counts     map[string]int64
	duplicates int64
}

// errUnfit means that the database refuses a run for good.
var errUnfit = errors.New("the database refuses what is to be kept")

// runStore stores runs of one tenant, all or none. It returns errUnfit where
// trying again would not help.
type runStore interface {
	putRuns(ctx context.Context, tenant tenant.ID, runs []*Run) error
}

func newHistory(st runStore, emit func(string, map[string]any)) *history {
	h := &history{store: st, emit: emit, held: admission.NewBudget(maxHeld), room: make(chan struct{}), counts: map[string]int64{}}
	h.queue = background.NewBatcher(background.Bounds{Age: flushRuns, Full: maxBatch}, h.flush)
	return h
}

// size returns about how many bytes a run takes in memory.
func (r *Run) size() int64 {
	return int64(512 + len(r.Trace) + len(r.Console) + len(r.Error) + len(r.Used) + len(r.payload))
}

// add queues a run. If the database cannot keep up with its tenant, add waits a
// little, and then drops the run and logs that.
func (h *history) add(r *Run) {
	h.mu.Lock()
	h.counts[r.Status]++
	h.mu.Unlock()
	if !h.admit(r) {
		h.emit("run.not_kept", map[string]any{"tenant": r.tenant, "run_id": r.ID, "reason": "the database does not keep up"})
		return
	}
	h.queue.Append(func(batch []*Run) []*Run { return append(batch, r) })
}

// admit takes the bytes of a run from the share of its tenant. It reports
// whether there was room within maxPatient.
func (h *history) admit(r *Run) bool {
	patience := time.NewTimer(maxPatient)
	defer patience.Stop()
	for {
		h.mu.Lock()
		room := h.room
		h.mu.Unlock()
		if h.held.Take(string(r.tenant), r.size()) {
			return true
		}
		select {
		case <-room:
		case <-patience.C:
			return false
		}
	}
}

func (h *history) duplicate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.duplicates++
}

func (h *history) stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Stats{Runs: maps.Clone(h.counts), Duplicates: h.duplicates, Waiting: h.queue.Len()}
}

// flush writes runs, each tenant's in transactions of their own.
func (h *history) flush(closing context.Context, batch []*Run) {
	byTenant := map[tenant.ID][]*Run{}
	for _, r := range batch {
		byTenant[r.tenant] = append(byTenant[r.tenant], r)
	}
	for tenant, runs := range byTenant {
		for len(runs) > 0 {
			n := portion(runs)
			h.write(closing, tenant, runs[:n])
			runs = runs[n:]
		}
	}
	for _, r := range batch {
		h.held.Release(string(r.tenant), r.size())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.room)
	h.room = make(chan struct{})
}

// portion returns how many of the first runs one transaction takes.
func portion(runs []*Run) (n int) {
	for size := int64(0); n < min(len(runs), maxBatch) && (n == 0 || size+runs[n].size() <= maxWritten); n++ {
		size += runs[n].size()
	}
	return n
}

// write stores some runs of one tenant. It tries a few times while the database
// is unavailable, without pauses once the service closes. If the database
// refuses one of the runs, write stores the others: all tenants wait for it, and
// the content of one run must not cost another.
func (h *history) write(closing context.Context, tenant tenant.ID, runs []*Run) {
	var err error
	pause := background.Backoff{First: 100 * time.Millisecond, Last: 2 * time.Second}
	for try := 1; ; try++ {
		if err = h.try(tenant, runs); err == nil {
			return
		}
		if try == runTries || errors.Is(err, errUnfit) {
			break
		}
		_ = pause.Wait(closing, nil) // it is tried in either case
	}
	if errors.Is(err, errUnfit) && len(runs) > 1 {
		for i := range runs {
			h.write(closing, tenant, runs[i:i+1])
		}
		return
	}
	h.emit("run.not_kept", map[string]any{"tenant": tenant, "runs": len(runs), "reason": err.Error()})
}

func (h *history) try(tenant tenant.ID, runs []*Run) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	failpoint.At("history.before-row")
	defer failpoint.At("history.after-row")
	return h.store.putRuns(ctx, tenant, runs)
}

// close writes what is queued, until ctx ends.
func (h *history) close(ctx context.Context) error {
	if err := h.queue.Close(ctx); err != nil {
		return fmt.Errorf("runs that were not written yet are lost: %w", err)
	}
	return nil
}
