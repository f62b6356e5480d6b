package admin

import (
	"cmp"
	"context"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/mail"
	"gatehouse/internal/outbox"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Options configure a Service. All must be set.
type Options struct {
	DB        *db.DB
	Directory *access.Directory
	Clock     clock.Clock
	Keyring   *secret.Keyring
	Limiter   *ratelimit.Limiter
	Cores     *admission.Cores
	Mails     *outbox.Outbox
	Letters   Letters
	Manifests Manifests
	Emit      func(event string, fields map[string]any)
	// Compile and Keys are those of config.Options.
	Compile func(ctx context.Context, tenant tenant.ID, module string, source component.Source) (imports []string, err error)
	Keys    func(ctx context.Context, q db.Querier, users map[user.ID]bool) ([]string, error)
	// Patience is how long a request waits for its change; 0 is 2 s.
	Patience time.Duration
}

// New returns a service; its Close must be called.
func New(o Options) *Service {
	s := &Service{
		store: store{db: o.DB, clock: o.Clock, keyring: o.Keyring, mails: o.Mails}, directory: o.Directory, clock: o.Clock,
		manifests: o.Manifests, letters: o.Letters, limiter: o.Limiter, cores: o.Cores, emit: o.Emit,
		cursors:  newCursors(o.Keyring.Derive("cursor of the configuration", 32)),
		options:  config.Options{Compile: o.Compile, Keyring: o.Keyring, Keys: o.Keys},
		planning: admission.NewGate(planners), searching: admission.NewGate(searches), promoting: admission.NewGate(works), patience: cmp.Or(o.Patience, patience),
	}
	s.base, s.stop = context.WithCancel(context.Background())
	return s
}

// store reads and writes the database.
type store struct {
	db      *db.DB
	clock   clock.Clock
	keyring *secret.Keyring
	mails   *outbox.Outbox
}

func (s store) objects(ctx context.Context, id tenant.ID, kind string) ([]config.Object, error) {
	state, err := config.LoadObjects(ctx, s.db.For(id))
	if err != nil {
		return nil, err
	}
	return state.Objects(kind)
}

func (s store) object(ctx context.Context, id tenant.ID, kind, name string) (config.Object, error) {
	if kind == "user" {
		return config.UserObject(ctx, s.db.For(id), name)
	}
	state, err := config.LoadObjects(ctx, s.db.For(id))
	if err != nil {
		return config.Object{}, err
	}
	return state.Object(kind, name)
}

// export returns the whole configuration and its version. It returns CONFLICT when there
// are too many users to show.
func (s store) export(ctx context.Context, id tenant.ID) (*config.Value, int64, error) {
	n, err := user.CountUpTo(ctx, s.db.For(id), maxExportUsers+1)
	if err != nil {
		return nil, 0, err
	}
	if n > maxExportUsers {
		return nil, 0, fault.New(fault.Conflict, "the manifest has more than %d users and is too large to show: the command gatehouse export writes it", maxExportUsers)
	}
	state, err := config.Load(ctx, s.db.For(id))
	if err != nil {
		return nil, 0, err
	}
	return state.Export(), state.Version(), nil
}

func (s store) plan(ctx context.Context, id tenant.ID, by config.Author, m *config.Spec, o config.Options) (*config.Plan, error) {
	return config.NewPlan(ctx, s.db.For(id), s.clock, by, m, o)
}

func (s store) apply(ctx context.Context, id tenant.ID, by config.Author, m *config.Spec, o config.Options) (*config.Result, error) {
	return config.Apply(ctx, s.db.For(id), s.clock, by, m, o)
}

// count counts the records of an entity type, up to one more than limit.
func (s store) count(ctx context.Context, id tenant.ID, e *schema.Entity, limit int) (int64, error) {
	return records.CountUpTo(ctx, s.db.For(id), e, limit+1)
}

// changes is tenant.ChangesBelow.
func (s store) changes(ctx context.Context, id tenant.ID, f tenant.ChangeFilter, below string, each func(tenant.Change) bool) (next string, err error) {
	return tenant.ChangesBelow(ctx, s.db.For(id), f, below, each)
}

func (s store) account(ctx context.Context, id tenant.ID, userID user.ID) (user.Account, error) {
	return user.AccountByID(ctx, s.db.For(id), userID)
}

// put puts a mail into the outbox and has it sent.
func (s store) put(ctx context.Context, id tenant.ID, m mail.Message) error {
	err := s.db.For(id).Write(ctx, func(tx db.Tx) error { return s.mails.Put(ctx, tx, m) })
	if err == nil {
		s.mails.Wake()
	}
	return err
}

func (s store) waiting(ctx context.Context, id tenant.ID, limit int) ([]outbox.Waiting, error) {
	return s.mails.Waiting(ctx, id, limit)
}

func (s store) waitingCount(ctx context.Context, id tenant.ID, limit int) (int64, error) {
	return outbox.CountUpTo(ctx, s.db.For(id), limit)
}

func (s store) users(ctx context.Context, id tenant.ID, f user.Search) (user.Found, error) {
	return user.Find(ctx, s.db.For(id), f)
}

// userObjectsOf returns users with their versions.
func userObjectsOf(list []*user.User) []config.Object { return config.UserObjects(list) }
