package identity

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// profile is the answer to GET /auth/me (contract I14, I3).
type profile struct {
	UserID        user.ID                   `json:"userId"`
	Email         string                    `json:"email"`
	Name          string                    `json:"name"`
	Locale        string                    `json:"locale"`
	EmailVerified bool                      `json:"emailVerified"`
	CustomFields  map[string]jsontext.Value `json:"customFields"`
	CreatedAt     string                    `json:"createdAt"`
}

// me returns the caller's own profile. All users may read their own. Custom fields are
// left out if one of the caller's permission sets has rights on users and does not allow
// reading them (contract I14, A6). It returns UNAUTHORIZED if the user no longer exists.
func (s *Service) me(ctx context.Context, viewer access.Viewer) (*profile, error) {
	u, err := s.store.self(ctx, viewer)
	if err != nil {
		return nil, err
	}
	fields, err := shownFields(viewer, u)
	return &profile{
		UserID: u.ID, Email: u.Email, Name: u.Name, Locale: u.Locale, EmailVerified: u.EmailVerified,
		CustomFields: fields, CreatedAt: string(clock.AppendRFC3339Micro(nil, u.CreatedAt)),
	}, err
}

// shownFields returns the declared custom fields that users may read in their own profile,
// with null for unset fields.
func shownFields(viewer access.Viewer, u *user.User) (map[string]jsontext.Value, error) {
	rights, err := viewer.OnUsers()
	if err != nil {
		return nil, err
	}
	cfg := viewer.Config()
	masked := slices.ContainsFunc(u.Sets, func(name string) bool {
		set := cfg.Sets[name]
		if set == nil {
			return false
		}
		_, speaks := set.Entities[schema.UserEntity]
		return speaks
	})
	stored := map[string]jsontext.Value{}
	if err := json.Unmarshal(u.Custom, &stored); err != nil {
		return nil, err
	}
	fields := map[string]jsontext.Value{}
	for i, f := range rights.Entity.Fields {
		if masked && !rights.ReadField[i] {
			continue
		}
		fields[f.Name] = schema.Null
		if v, ok := stored[f.MemberName()]; ok {
			fields[f.Name] = v
		}
	}
	return fields, nil
}
