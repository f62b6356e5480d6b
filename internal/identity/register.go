package identity

import (
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/email"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/schema"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
	"gatehouse/internal/wtf8"
)

// The activation modes (contract I6).
const (
	byEmail = "svc_email"
	byApp   = "app_managed"
	noProof = tenant.ActivateAtOnce
)

var (
	errClosed = fault.New(fault.Forbidden, "registration is closed")
	errNoSet  = fault.New(fault.ServiceUnavailable,
		"registration is not possible right now: the default permission set does not exist; tell the administrator")
	errTakenByUser  = fault.New(fault.EmailTaken, "there is an account with this e-mail address already; log in instead")
	errTakenByStaff = fault.New(fault.EmailTaken, "this e-mail address cannot be registered; contact the administrator")
)

// registration is a checked request to register.
type registration struct {
	email, password, name, locale string
	custom                        jsontext.Value // the JSON object of custom fields, all text
}

// registered is the answer to a registration.
type registered struct {
	UserID          user.ID `json:"userId"`
	ActivationMode  string  `json:"activationMode"`
	ActivationToken string  `json:"activationToken,omitempty"`
}

// readRegistration reads the built-in columns and the declared custom fields from a body.
// It ignores all other members (contract I4), so that a caller cannot register as more
// than an end-user. It returns VALIDATION with the fields that fail.
func readRegistration(body *httpapi.Object, users *schema.Entity) (*registration, error) {
	r := &registration{}
	bad := map[string]string{}
	text := func(name string) string {
		v, ok := body.Get(name)
		if !ok || schema.IsNull(v) {
			return ""
		}
		if v.Kind() != '"' {
			bad[name] = "expected text"
			return ""
		}
		return schema.Unquote(v)
	}
	r.email = email.Clean(text("email"))
	r.password = text("password")
	r.name = strings.TrimSpace(text("name"))
	r.locale = strings.TrimSpace(text("locale"))
	for name, reason := range r.check() {
		if bad[name] == "" {
			bad[name] = reason
		}
	}
	if len(bad) > 0 {
		return nil, fault.Fields("the registration is not valid", bad)
	}
	var err error
	r.custom, err = customFields(body, users)
	return r, err
}

func (r *registration) check() map[string]string {
	bad := map[string]string{}
	if err := user.CheckEmail(r.email); err != nil {
		bad["email"] = err.Error()
	}
	if err := secret.CheckPassword(r.password); err != nil {
		bad["password"] = err.Error()
	}
	if err := user.CheckName(r.name); err != nil {
		bad["name"] = err.Error()
	}
	if err := user.CheckLocale(r.locale); err != nil {
		bad["locale"] = err.Error()
	}
	return bad
}

// customFields returns the object of the declared custom fields in a body, each as text,
// unchecked (contract I4): numbers and booleans in their text form, objects and lists
// as JSON text. It leaves out null. A field with the name of a built-in column cannot
// be set, and a managed one is not the user's to set (contract U9).
func customFields(body *httpapi.Object, users *schema.Entity) (jsontext.Value, error) {
	out := []byte{'{'}
	for _, f := range users.Fields {
		v, ok := body.Get(f.Name)
		if !ok || schema.IsNull(v) || builtIn[f.Name] || f.Managed {
			continue
		}
		text := string(v)
		switch v.Kind() {
		case '"':
			text = schema.Unquote(v)
		case '{', '[':
			compact := v.Clone()
			if err := compact.Compact(); err != nil {
				return nil, err
			}
			text = string(compact)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(wtf8.AppendUTF8(out, f.MemberName()), ':')
		out = wtf8.AppendUTF8(out, text)
	}
	return append(out, '}'), nil
}

var builtIn = map[string]bool{"email": true, "password": true, "name": true, "locale": true}

// register adds an external user with the default permission set, in the state that the
// activation mode requires. It returns EMAIL_TAKEN if any user, internal or external, has
// the e-mail address; FORBIDDEN if registration was closed meanwhile;
// SERVICE_UNAVAILABLE if the default permission set no longer exists, because such a
// user could do nothing; and OVERLOADED if there is no place to hash in time, or the
// configuration keeps changing.
//
// It looks the address up once it has a place to hash: OVERLOADED, which is not charged,
// must not show that the address is free.
func (s *Service) register(ctx context.Context, cfg *access.Config, r *registration) (*registered, error) {
	hash, err := s.hashForNew(ctx, cfg, r)
	if err != nil {
		return nil, err
	}
	u := user.Registration{Email: r.email, Name: r.name, Locale: r.locale, PasswordHash: hash, Custom: r.custom}
	for range 4 {
		var out *registered
		if out, err = s.tryRegister(ctx, cfg, u); !errors.Is(err, errStale) {
			return out, err
		}
		if cfg, err = s.dir.Current(ctx, cfg.Tenant.ID); err != nil {
			return nil, err
		}
	}
	return nil, fault.New(fault.Overloaded, "the configuration changes too fast; try again")
}

// hashForNew waits for a place and returns the hash of a registration's password. It
// returns EMAIL_TAKEN before it hashes if a user has the address.
func (s *Service) hashForNew(ctx context.Context, cfg *access.Config, r *registration) (string, error) {
	leave, err := s.hasher.Admit(ctx, cfg.Tenant.ID)
	if err != nil {
		return "", err
	}
	defer leave()
	if err := s.checkFree(ctx, cfg, r.email); err != nil {
		return "", err
	}
	return s.hasher.HashAdmitted(ctx, cfg.Tenant.ID, r.password)
}

// tryRegister stores a new user under one version of the configuration. It returns errStale
// if that is not the current one.
func (s *Service) tryRegister(ctx context.Context, cfg *access.Config, u user.Registration) (*registered, error) {
	settings := &cfg.Tenant.Settings.ExternalIdentity
	if !settings.OpenRegistration {
		return nil, errClosed
	}
	if set := settings.DefaultPermissionSet; set != "" && cfg.Sets[set] == nil {
		return nil, errNoSet
	}
	token := newSecret()
	id, err := s.store.register(ctx, cfg, u, token, s.mailer)
	if err != nil {
		if fault.CodeOf(err) == fault.Conflict {
			err = s.checkFree(ctx, cfg, u.Email)
		}
		if err == nil { // the user who had the address has been deleted
			err = errTakenByUser
		}
		return nil, err
	}
	s.counts.registrations.Add(1)
	out := &registered{UserID: id, ActivationMode: settings.ActivationMode}
	switch settings.ActivationMode {
	case byEmail:
		s.mailer.Wake()
	case byApp:
		out.ActivationToken = token
	}
	return out, nil
}

// checkFree returns EMAIL_TAKEN if a user has the e-mail address.
func (s *Service) checkFree(ctx context.Context, cfg *access.Config, address string) error {
	acc, err := s.store.byEmail(ctx, cfg.Tenant.ID, address)
	switch {
	case errors.Is(err, user.ErrUnknown):
		return nil
	case err != nil:
		return err
	case acc.Type == user.External:
		return errTakenByUser
	}
	return errTakenByStaff
}
