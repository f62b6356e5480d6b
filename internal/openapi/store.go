package openapi

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// New returns a Service over a database. It makes documents on the cores, in turns
// with all other work on them.
func New(d *db.DB, directory *access.Directory, keys Keys, cores *admission.Cores) *Service {
	return &Service{store{d}, directory, keys, cores}
}

type store struct{ d *db.DB }

func (s store) defined(ctx context.Context, of tenant.ID) (*custom.Definitions, error) {
	return custom.Load(ctx, s.d.For(of))
}

// Describe returns the document of a viewer (see Document), with the custom
// endpoints that are defined now.
func Describe(ctx context.Context, h db.Handle, viewer access.Viewer) ([]byte, error) {
	defined, err := custom.Load(ctx, h)
	if err != nil {
		return nil, err
	}
	return Document(viewer, defined)
}
