package outbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const token = "verify-token-0123456789abcdef"

func message(to string) mail.Message {
	return mail.Message{From: "Acme <no-reply@acme.example>", To: to, Subject: "Confirm", Text: "https://acme.example/verify?token=" + token}
}

// postman is a Sender that keeps what it is given; answer, when set, decides
// what becomes of a mail.
type postman struct {
	mu     sync.Mutex
	sent   []mail.Message
	tries  int
	answer func(ctx context.Context, m mail.Message) error
}

func (p *postman) Send(ctx context.Context, m mail.Message) error {
	p.mu.Lock()
	p.tries++
	answer := p.answer
	p.mu.Unlock()
	if answer != nil {
		if err := answer(ctx, m); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
	return nil
}

func (p *postman) answers(f func(ctx context.Context, m mail.Message) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

func (p *postman) tried() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries
}

func (p *postman) recipients() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for _, m := range p.sent {
		list = append(list, m.To)
	}
	return list
}

// office is an outbox with all that it needs.
type office struct {
	*Outbox
	t       *testing.T
	db      *db.DB
	clock   *clock.Fake
	postman *postman

	mu    sync.Mutex
	lines []string
}

func newKeyring(t *testing.T) *secret.Keyring {
	t.Helper()
	k, err := secret.NewKeyring([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newOffice(t *testing.T, d *db.DB) *office {
	t.Helper()
	f := &office{t: t, db: d, clock: clock.NewFake(noon), postman: &postman{}}
	f.Outbox = New(Options{DB: d, Keyring: newKeyring(t), Clock: f.clock, Sender: f.postman, Emit: f.note})
	return f
}

func (f *office) note(event string, fields map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, fmt.Sprint(event, " ", fields))
}

// log is what was emitted so far.
func (f *office) log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.lines, "\n")
}

// each runs a test on both engines, each with an office of its own.
func each(t *testing.T, fn func(t *testing.T, f *office)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { fn(t, newOffice(t, d)) })
}

// put puts a mail in and commits.
func (f *office) put(tenant tenant.ID, to string) {
	f.t.Helper()
	err := f.db.For(tenant).Write(f.t.Context(), func(tx db.Tx) error { return f.Put(f.t.Context(), tx, message(to)) })
	if err != nil {
		f.t.Fatal(err)
	}
}

// run runs the outbox until the returned function, which waits for its end.
func (f *office) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	f.t.Cleanup(stop)
	return stop
}

// row is a waiting mail as the database has it.
type row struct {
	tenant                tenant.ID
	id, sealed, lastError string
	attempts              int
	next, leased, created time.Time
}

func (f *office) rows() []row {
	f.t.Helper()
	var list []row
	err := f.db.Unscoped("test").Query(context.Background(), `SELECT tenant_id, mail_id, sealed, last_error, attempts, next_at, leased_until, created_at
		FROM outbox ORDER BY tenant_id, mail_id`, func(r db.Row) error {
		list = append(list, row{tenant.ID(r.Text(0)), r.Text(1), r.Text(2), r.Text(3), int(r.Int(4)), clock.FromMicros(r.Int(5)), clock.FromMicros(r.Int(6)), clock.FromMicros(r.Int(7))})
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// until waits for something to come true.
func (f *office) until(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: not within 20 s; log:\n%s", what, f.log())
		}
	}
}

func (f *office) untilEmpty() {
	f.t.Helper()
	f.until("the outbox is empty", func() bool { return len(f.rows()) == 0 })
}
