package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admin"
	"gatehouse/internal/admission"
	"gatehouse/internal/apikey"
	"gatehouse/internal/audit"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/data"
	"gatehouse/internal/db"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/identity"
	"gatehouse/internal/mail"
	"gatehouse/internal/openapi"
	"gatehouse/internal/outbox"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/records"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/staff"
	"gatehouse/internal/tenant"
	"gatehouse/internal/transfer"
)

// Options configure a server. Proxies, DrainDelay and Patience may be left out.
type Options struct {
	DB      *db.DB
	Keyring *secret.Keyring
	Clock   clock.Clock
	// Log takes one JSON object a line: the request log and the server's other
	// events.
	Log     io.Writer
	Proxies httpapi.TrustedProxies
	// Engine runs the tenants' components. The caller closes it.
	Engine *component.Engine
	// Mail sends the mails of External Identity.
	Mail mail.Sender
	// DrainDelay is how long the server goes on taking connections and requests after it
	// has begun to report that it is not ready.
	DrainDelay time.Duration
	// Patience is how long a request waits for its change of configuration before it is
	// told of the work; 0 is 2 s. It is for tests, which must not depend on load.
	Patience time.Duration
}

// Server serves every tenant of a database.
type Server struct {
	db        *db.DB
	clock     clock.Clock
	proxies   httpapi.TrustedProxies
	directory *access.Directory
	records   *records.Store
	keys      *apikey.Service
	engine    *component.Engine
	endpoints *endpoint.Service
	identity  *identity.Service
	staff     *staff.Service
	admin     *admin.Service
	mails     *outbox.Outbox
	limiter   *ratelimit.Limiter
	answers   *admission.Budget // bytes of answers that are built or being written
	bodies    *admission.Budget // bytes of request bodies
	log       *audit.RequestLog
	recorder  *audit.Recorder
	metrics   *metrics
	surfaces  surfaces

	overloads throttledLog

	drainDelay time.Duration
	draining   atomic.Bool     // the server reports that it is not ready
	drained    context.Context //nolint:containedctx // ends after the drain delay; streams end with it
	drain      context.CancelFunc
	background background
}

// background is the work that runs beside requests.
type background struct {
	sync.WaitGroup
	cancel context.CancelFunc
}

// The limits on the memory that the answers and the bodies of all requests may
// take; one tenant gets at most half. Each has its own budget, so that clients
// that do not read answers do not keep others from sending, and vice versa.
// 64 MiB are 16 of the longest pages for one tenant (and as many waiting
// clients), and little compared with a server's memory.
const (
	answerBytes = 64 << 20
	bodyBytes   = 64 << 20
)

// New wires a server and starts its background work. Close must be called to
// end it.
func New(o Options) *Server {
	directory := access.NewDirectory(o.DB)
	store := records.New(o.DB, directory, o.Clock, o.Keyring.Derive("cursor", 32)).Share(o.Engine.Cores())
	answers := admission.NewBudget(answerBytes)
	log := audit.NewRequestLog(o.Log, o.Clock)
	s := &Server{
		db: o.DB, clock: o.Clock, proxies: o.Proxies, directory: directory, records: store, drainDelay: o.DrainDelay,
		keys:     apikey.New(o.DB, o.Clock, directory),
		limiter:  ratelimit.New(o.Clock.Now, ratelimit.Options{}),
		answers:  answers,
		bodies:   admission.NewBudget(bodyBytes),
		log:      log,
		recorder: audit.NewRecorder(o.DB, o.Clock, audit.Options{Log: log, Cores: o.Engine.Cores()}),
		engine:   o.Engine,
		endpoints: endpoint.New(o.DB, endpoint.Options{
			Directory: directory, Records: store, Engine: o.Engine, Budget: answers, Keyring: o.Keyring, Clock: o.Clock, Emit: log.Emit,
		}),
	}
	s.mails = outbox.New(outbox.Options{DB: o.DB, Keyring: o.Keyring, Clock: o.Clock, Sender: o.Mail, Emit: log.Emit})
	hasher := signin.NewHasher(o.Engine.Cores())
	s.identity = identity.New(identity.Options{
		DB: o.DB, Directory: directory, Clock: o.Clock, Keyring: o.Keyring, Limiter: s.limiter, Mailer: s.mails, Hasher: hasher, Emit: log.Emit,
	})
	s.staff = staff.New(staff.Options{DB: o.DB, Directory: directory, Clock: o.Clock, Keyring: o.Keyring, Limiter: s.limiter, Mailer: s.mails, Hasher: hasher, Emit: log.Emit})
	entries, keys := s.logAdmin(o.Keyring.Derive("admin cursor", 32))
	s.admin = admin.New(admin.Options{
		DB: o.DB, Directory: directory, Clock: o.Clock, Keyring: o.Keyring, Limiter: s.limiter, Cores: o.Engine.Cores(), Mails: s.mails,
		Letters: s.identity, Manifests: manifests{}, Emit: log.Emit, Compile: s.compile, Keys: s.keys.OfUsers, Patience: o.Patience,
	})
	standard := data.New(data.Options{DB: o.DB, Records: store, Clock: o.Clock, Secret: o.Keyring.Derive("idempotency", 32), Emit: log.Emit})
	files := transfer.New(transfer.Options{DB: o.DB, Records: store, Directory: directory, Clock: o.Clock, Query: data.ReadQuery})
	s.surfaces = newSurfaces(standard, s.endpoints, s.identity, s.staff, openapi.New(o.DB, directory, s.keys, o.Engine.Cores()), s.admin, files, entries, keys)
	s.metrics = newMetrics(s)
	s.drained, s.drain = context.WithCancel(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	s.background.cancel = cancel
	s.background.Go(func() { s.recorder.RunRetention(ctx) })
	s.background.Go(func() { s.endpoints.RunRetention(ctx) })
	s.background.Go(func() { s.identity.RunRetention(ctx) })
	s.background.Go(func() { standard.RunRetention(ctx) })
	s.background.Go(func() { s.staff.RunRetention(ctx) })
	s.background.Go(func() { s.keys.RunLastUse(ctx) })
	s.background.Go(func() {
		records.RunHousekeeping(ctx, o.DB, o.Clock, func(err error) { log.Emit("records.housekeeping_failed", map[string]any{"error": err.Error()}) })
	})
	s.background.Go(func() {
		records.RunRetention(ctx, o.DB, o.Clock, func(err error) { log.Emit("records.retention_failed", map[string]any{"error": err.Error()}) })
	})
	s.background.Go(func() {
		tenant.RunDeletions(ctx, o.DB, func(err error) { log.Emit("tenant.deletion_failed", map[string]any{"error": err.Error()}) })
	})
	s.background.Go(func() {
		o.DB.RunStatistics(ctx, func(err error) { log.Emit("database.statistics_failed", map[string]any{"error": err.Error()}) })
	})
	s.background.Go(func() { s.mails.Run(ctx) })
	return s
}

// Timeouts of every connection. A body must arrive, and an answer leave, within
// them, so that no peer holds a connection for longer.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10
)

// drainTimeout is how long running requests have to finish after the server was
// told to stop.
var drainTimeout = 30 * time.Second

// After the drain, what still runs is cut off: endsWithin is how long it has to notice, and
// closesWithin how long what is queued may take to be written.
const (
	endsWithin   = 2 * time.Second
	closesWithin = 8 * time.Second
)

// lastAnswers is how long a draining server waits for connections to send one
// more request.
const lastAnswers = 500 * time.Millisecond

// HTTP returns the server of the public listener.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: s.netLog(),
		DisableGeneralOptionsHandler: true,
	}
}

// Serve serves public, and the operator's pages on ops unless it is nil, until
// ctx ends. Then it drains: it reports that it is not ready, serves on until the
// drain delay has passed, accepts no new connections, answers the connections it
// has one last time, lets running requests finish, and writes what is queued. A
// request that does not finish in time, of a client that does not read its answer for
// example, is cut off. The listeners are closed when it returns.
func (s *Server) Serve(ctx context.Context, public, ops net.Listener) error {
	front := s.HTTP()
	servers := []*http.Server{front}
	var open atomic.Int64 // connections of the public listener
	front.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	failed := make(chan error, 2)
	served := make(chan struct{})
	listener := &drainingListener{Listener: public}
	go func() {
		failed <- front.Serve(envelopedListener{listener, s})
		close(served)
	}()
	if ops != nil {
		back := s.opsServer()
		servers = append(servers, back)
		go func() { failed <- back.Serve(ops) }()
	}
	var err error
	select {
	case <-ctx.Done():
		err = s.awaitBalancers(failed)
	case err = <-failed:
	}
	s.beginDrain()
	listener.drain()
	<-served
	// Shutdown closes a connection between two requests, and leaves a request
	// that has just been read unanswered. So each connection first gets a last
	// answer, which says that the connection closes; the wait for connections
	// that send nothing ends after lastAnswers.
	for begun := time.Now(); open.Load() > 0 && time.Since(begun) < lastAnswers; {
		time.Sleep(5 * time.Millisecond)
	}
	return errors.Join(err, s.finish(servers))
}

// finish lets running requests finish, cuts off those that do not, and closes the server.
func (s *Server) finish(servers []*http.Server) (err error) {
	drain, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	for _, h := range servers {
		switch e := h.Shutdown(drain); {
		case errors.Is(e, context.DeadlineExceeded):
			s.log.Emit("server.requests_cut", map[string]any{"requests": s.metrics.inFlight.Load()})
			err = errors.Join(err, h.Close())
		case e != nil && !errors.Is(e, net.ErrClosed):
			err = errors.Join(err, e, h.Close())
		}
	}
	for begun := time.Now(); s.metrics.inFlight.Load() > 0 && time.Since(begun) < endsWithin; {
		time.Sleep(5 * time.Millisecond)
	}
	closing, cancel := context.WithTimeout(context.Background(), closesWithin) // drain may be over
	defer cancel()
	return errors.Join(err, s.Close(closing))
}

// Close ends the background work and writes what is queued: audit entries,
// rollups, runs, the use of keys, log lines. It does not close the database.
func (s *Server) Close(ctx context.Context) error {
	s.beginDrain()
	asked := errors.Join(s.admin.Close(ctx), s.identity.Close(ctx), s.staff.Close(ctx)) // may still put mails into the outbox
	s.background.cancel()
	s.background.Wait()
	return errors.Join(asked, s.endpoints.Close(ctx), s.recorder.Close(ctx), s.keys.Close(ctx), s.log.Close())
}

// compile is config.Options.Compile.
func (s *Server) compile(ctx context.Context, id tenant.ID, module string, source component.Source) ([]string, error) {
	return s.engine.Check(ctx, string(id), module, source)
}

// Directory returns the server's own directory, for code in the same process: a
// change after which Forget is called on it takes effect at once.
func (s *Server) Directory() *access.Directory { return s.directory }

// Keys returns the server's own service; see Directory.
func (s *Server) Keys() *apikey.Service { return s.keys }

// Records returns the server's own store; see Directory.
func (s *Server) Records() *records.Store { return s.records }

// Endpoints returns the server's own service; see Directory.
func (s *Server) Endpoints() *endpoint.Service { return s.endpoints }

// Emit writes an event of the server's own to the log.
func (s *Server) Emit(event string, fields map[string]any) { s.log.Emit(event, fields) }

// overloaded returns OVERLOADED where the database refuses for now, and logs
// the cause. Where the database was lost while it committed the request's change, the answer says
// so (contract E6). overloaded returns nil for any other error.
func (s *Server) overloaded(err error) error {
	for _, e := range []error{db.ErrFull, db.ErrBusy, db.ErrUnavailable} {
		if !errors.Is(err, e) {
			continue
		}
		s.overloads.log(s, err)
		if errors.Is(err, db.ErrUnknown) {
			return fault.New(fault.Overloaded, "whether the change was made is unknown: it was made as a whole or not at all; read it before you send it again, or send it again with the same Idempotency-Key").
				With("outcome", "unknown").After(retryAfter)
		}
		return fault.New(fault.Overloaded, "the service cannot do this right now; try again soon").After(retryAfter)
	}
	return nil
}

// waitsFor is how long after its begin a request may still wait for the database, so that it is
// answered within 10 s whatever becomes of that.
const waitsFor = 5 * time.Second

// answerInTime returns the context of a request that began at an instant.
func answerInTime(ctx context.Context, began time.Time) context.Context {
	return db.AnswerBy(ctx, began.Add(waitsFor))
}

// retryAfter is when a request that the database refused may be sent again.
const retryAfter = 5 * time.Second
