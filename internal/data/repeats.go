package data

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// repeats lets a request with an Idempotency-Key take effect once in 24 hours
// (contract R18).
type repeats struct {
	store   store
	clock   clock.Clock
	secret  []byte
	running admission.KeyedMutex // lets one request of a key run at a time
}

type (
	keyHash  string
	bodyHash string
)

// claim is what a request with an Idempotency-Key is known by: its user, whose keys are
// their own, and the hashes of the key and of what is asked for.
type claim struct {
	tenant tenant.ID
	caller user.ID
	key    keyHash
	body   bodyHash
}

// kept is what is known of a request that was done.
type kept struct {
	body    bodyHash
	outcome string
}

// claim returns the claim of a request, nil for one without a key. The body must have
// been read.
func (r *repeats) claim(c *httpapi.Authed) (*claim, error) {
	key, err := httpapi.IdempotencyKey(c.Request.Header)
	if key == "" || err != nil {
		return nil, err
	}
	return &claim{
		tenant: c.Config.Tenant.ID, caller: c.Viewer.UserID(), key: keyHash(r.hash("key", []byte(key))),
		body: bodyHash(r.hash(c.Route.Pattern+"\x00"+c.Params.Get("entity"), c.Seen())),
	}, nil
}

func (r *repeats) hash(what string, text []byte) string {
	mac := hmac.New(sha256.New, r.secret)
	mac.Write([]byte(what + "\x00"))
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}

// waitFor is how long a request waits for another one of its key.
const waitFor = 10 * time.Second

var (
	errWaiting = fault.New(fault.Overloaded, "another request with this Idempotency-Key is being done; try again soon").After(time.Second)
	errOther   = fault.New(fault.IdempotencyKeyReused, "this Idempotency-Key was used for another request: expected the same path and body, or a new key")
)

// write does a batch, once for each Idempotency-Key of a caller. again reports that it
// was done before. It counts the request as what the batch weighs.
func (s *Service) write(ctx context.Context, c *httpapi.Authed, b records.Batch) (done []records.Done, again bool, err error) {
	claim, err := s.repeats.claim(c)
	if err != nil {
		return nil, false, err
	}
	session := s.records.As(c.Viewer).Within(c)
	if claim == nil {
		if err := c.Weigh(weight(len(b.Items))); err != nil {
			return nil, false, err
		}
		done, err = session.Batch(ctx, b)
		return done, false, err
	}
	unlock, err := s.repeats.lock(ctx, claim)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	if done, err = s.repeated(ctx, session, claim, b); done != nil || err != nil {
		return done, true, err
	}
	if err := c.Weigh(weight(len(b.Items))); err != nil {
		return nil, false, err
	}
	b.Also = s.repeats.store.keeping(ctx, claim, s.repeats.clock.Now())
	if done, err = session.Batch(ctx, b); err == nil {
		return done, false, nil
	}
	// It may have been done on another node meanwhile, and have failed here by just that:
	// its value was taken, its record deleted.
	if found, failed := s.repeated(ctx, session, claim, b); found != nil || failed != nil {
		return found, true, failed
	}
	if errors.Is(err, errRepeated) { // and forgotten since
		err = errWaiting
	}
	return nil, false, err
}

// lock waits until no other request of the key runs here.
func (r *repeats) lock(ctx context.Context, c *claim) (unlock func(), err error) {
	limited, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	unlock, err = r.running.Lock(limited, string(c.tenant)+"/"+string(c.caller)+"/"+string(c.key))
	if errors.Is(err, admission.ErrFull) || errors.Is(err, context.DeadlineExceeded) {
		err = cmp.Or(ctx.Err(), error(errWaiting))
	}
	return unlock, err
}

// repeated returns the outcome of a request that was done before, with the records as
// the viewer may read them now, nil for a new one. It returns IDEMPOTENCY_KEY_REUSED
// where the key was used for another request.
func (s *Service) repeated(ctx context.Context, session *records.Session, c *claim, b records.Batch) ([]records.Done, error) {
	found, err := s.repeats.store.find(ctx, c, clock.Micros(s.repeats.clock.Now().Add(-keepFor)))
	if err != nil || found == nil {
		return nil, err
	}
	if found.body != c.body {
		return nil, errOther
	}
	done, err := decodeOutcome(found.outcome)
	if err != nil {
		return nil, err
	}
	return done, session.Reread(ctx, b, done)
}

// keptItem is one item of an outcome as it is stored.
type keptItem struct {
	ID      string     `json:"id,omitempty"`
	Created bool       `json:"created,omitempty"`
	Error   *keptError `json:"error,omitempty"`
}

type keptError struct {
	Code    fault.Code     `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// maxOutcome is the largest outcome in bytes that is kept with the details of errors.
const maxOutcome = 64 << 10

func encodeOutcome(done []records.Done) (string, error) {
	list := make([]keptItem, len(done))
	for i, d := range done {
		list[i] = keptItem{ID: d.ID, Created: d.Created}
		if d.Err != nil {
			list[i].Error = &keptError{d.Err.Code, d.Err.Message, d.Err.Details}
		}
	}
	text, err := json.Marshal(list)
	if err != nil || len(text) <= maxOutcome {
		return string(text), err
	}
	for i := range list {
		if list[i].Error != nil {
			list[i].Error.Details = nil
		}
	}
	text, err = json.Marshal(list)
	return string(text), err
}

func decodeOutcome(text string) ([]records.Done, error) {
	var list []keptItem
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	done := make([]records.Done, len(list))
	for i, it := range list {
		done[i] = records.Done{ID: it.ID, Created: it.Created}
		if e := it.Error; e != nil {
			done[i].Err = &fault.Error{Code: e.Code, Message: e.Message, Details: e.Details}
		}
	}
	return done, nil
}
