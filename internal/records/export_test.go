package records

import (
	"context"

	"gatehouse/internal/db"
)

// Spy is a session that tells of each statement it reads with.
func Spy(s *Session, tell func(sql string, args []any)) *Session {
	return &Session{store: s.store, viewer: s.viewer, h: spy{s.h, tell}}
}

type spy struct {
	db.Handle
	tell func(sql string, args []any)
}

func (s spy) Query(ctx context.Context, sql string, each func(db.Row) error, args ...any) error {
	s.tell(sql, args)
	return s.Handle.Query(ctx, sql, each, args...)
}

// EncodeCursor and DecodeCursor are the cursor's two halves, for its own tests.
func EncodeCursor(key []byte, scope string, before int64, id string, after, top int64) string {
	return cursor{before: before, beforeID: id, after: after, top: top}.encode(key, scope)
}

// DecodeCursor reads the cursor back.
func DecodeCursor(key []byte, scope, text string) (before int64, id string, after, top int64, err error) {
	c, err := decodeCursor(key, scope, text)
	return c.before, c.beforeID, c.after, c.top, err
}
