package openapi

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/custom"
	"gatehouse/internal/db"
)

// Describe returns the document of a viewer (see Document), with the custom
// endpoints that are defined now.
func Describe(ctx context.Context, h db.Handle, viewer access.Viewer) ([]byte, error) {
	defined, err := custom.Load(ctx, h)
	if err != nil {
		return nil, err
	}
	return Document(viewer, defined)
}
