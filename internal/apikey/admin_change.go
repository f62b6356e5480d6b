package apikey

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/user"
)

func (a *Admin) serveCreate(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	body, err := httpapi.Decode[NewKey](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	spec := CreateSpec{Name: body.Name, RateLimitPerMinute: DefaultRateLimit, Origins: lines(body.CORSAllowedOrigins), Allowlist: lines(body.IPAllowlist)}
	if body.RateLimitPerMinute != nil {
		spec.RateLimitPerMinute = *body.RateLimitPerMinute
	}
	if body.ExpiresAt != nil {
		spec.ExpiresAt = clock.Micros(*body.ExpiresAt)
	}
	switch self := c.Viewer.UserID(); {
	case body.User == "" || body.User == string(self) || user.EmailKey(body.User) == user.EmailKey(c.Viewer.Email()):
		spec.UserID = self
	case strings.Contains(body.User, "@"):
		spec.Email = body.User
	default:
		spec.UserID = user.ID(body.User)
	}
	if err := c.LastingCheck(func(w access.Viewer) error { return MayCreateFor(w, spec.UserID) }); err != nil { // before the user is looked up: others learn nothing
		return httpapi.Reply{}, err
	}
	key, token, err := a.keys.Create(ctx, c.Session.Actor(), c.Viewer.Tenant(), spec)
	if err != nil {
		return httpapi.Reply{}, wireNames(err)
	}
	info, err := a.showOne(ctx, c, &key)
	r, err := reply(CreatedKey{Key: info, Token: token.Reveal()}, nil, err)
	r.Status = http.StatusCreated
	return r, err
}

// lines returns the entries of a list without those that are empty: a form has
// one a line.
func lines(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// wireName are the members of bodies, by the names that CreateSpec.check uses.
var wireName = map[string]string{
	"rate_limit_per_minute": "rateLimitPerMinute", "cors_allowed_origins": "corsAllowedOrigins", "ip_allowlist": "ipAllowlist", "expires_at": "expiresAt",
}

// wireNames returns a VALIDATION with the names of the body's members.
func wireNames(err error) error {
	e, ok := err.(*fault.Error) //nolint:errorlint // Create returns it as it is
	if !ok || e.Code != fault.Validation {
		return err
	}
	reasons, ok := e.Details["fields"].(map[string]string)
	if !ok {
		return err
	}
	named := map[string]string{}
	for name, reason := range reasons {
		if wire := wireName[name]; wire != "" {
			name = wire
		}
		named[name] = reason
	}
	return fault.Fields(e.Message, named)
}

var errNoKey = fault.New(fault.NotFound, "there is no such API key")

// changeable returns nil if the viewer may change a key; NOT_FOUND if they do not
// see it or it does not exist.
func changeable(c *httpapi.Authed, k *Key) error {
	if k == nil || !sees(c.Viewer, k) {
		return errNoKey
	}
	if c.LastingCheck(func(w access.Viewer) error { return MayCreateFor(w, k.UserID) }) != nil {
		return fault.New(fault.Forbidden, "only the tenant's owner may change an API key of another user")
	}
	return nil
}

func (a *Admin) serveChange(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	body, err := httpapi.Decode[KeyChange](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	now := clock.Micros(a.keys.clock.Now())
	var conflict *Key
	key, err := a.keys.store.change(ctx, a.keys.clock, c.Session.Actor(), c.Viewer.Tenant(), c.Params.Get("id"), func(k *Key) error {
		if err := changeable(c, k); err != nil {
			return err
		}
		if body.Version == "" {
			return fault.Fields("version: is required", map[string]string{"version": "is required"})
		}
		if conflict = nil; body.Version != k.version() {
			present := *k
			conflict = &present
			return errConflict
		}
		return body.apply(k, now)
	})
	if conflict != nil && fault.CodeOf(err) == fault.Conflict {
		info, failed := a.showOne(ctx, c, conflict)
		if failed != nil {
			return httpapi.Reply{}, failed
		}
		return httpapi.Reply{}, errConflict.With("stored", info).With("asked", body).With("version", info.Version)
	}
	if err != nil {
		return httpapi.Reply{}, wireNames(err)
	}
	a.keys.forget()
	info, err := a.showOne(ctx, c, key)
	return reply(info, nil, err)
}

var errConflict = fault.New(fault.Conflict, "the key was changed meanwhile; details.stored is what it is now")

// apply changes a key in memory. It returns VALIDATION with every member that is
// wrong. An expiry that stays as it is may be over.
func (b *KeyChange) apply(k *Key, now int64) error {
	spec := CreateSpec{
		Name: k.Name, RateLimitPerMinute: k.RateLimitPerMinute, Origins: k.Origins, Allowlist: k.Allowlist.Strings(), ExpiresAt: k.ExpiresAt,
	}
	if b.Name != nil {
		spec.Name = *b.Name
	}
	if b.RateLimitPerMinute != nil {
		spec.RateLimitPerMinute = *b.RateLimitPerMinute
	}
	if b.CORSAllowedOrigins != nil {
		spec.Origins = lines(*b.CORSAllowedOrigins)
	}
	if b.IPAllowlist != nil {
		spec.Allowlist = lines(*b.IPAllowlist)
	}
	malformed := false
	if b.ExpiresAt != nil && *b.ExpiresAt == "" {
		spec.ExpiresAt = 0
	} else if b.ExpiresAt != nil {
		at, err := time.Parse(time.RFC3339Nano, *b.ExpiresAt)
		malformed, spec.ExpiresAt = err != nil, clock.Micros(at)
	}
	next, reasons := spec.check(now)
	if spec.ExpiresAt == k.ExpiresAt {
		delete(reasons, "expires_at")
	}
	if malformed {
		reasons["expires_at"] = "expected a time such as 2026-12-31T00:00:00Z, or empty for never"
	}
	if len(reasons) > 0 {
		return fault.Fields("the API key is not valid", reasons)
	}
	k.Name, k.RateLimitPerMinute, k.Origins, k.Allowlist, k.ExpiresAt = next.Name, next.RateLimitPerMinute, next.Origins, next.Allowlist, next.ExpiresAt
	return nil
}

func (a *Admin) serveDelete(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	id := c.Params.Get("id")
	k, err := a.keys.store.byID(ctx, c.Viewer.Tenant(), id)
	if err == nil {
		err = changeable(c, k)
	}
	if err == nil {
		err = a.keys.Delete(ctx, c.Session.Actor(), c.Viewer.Tenant(), id)
	}
	return reply(DeletedKey{ID: id, Deleted: true}, nil, err)
}
