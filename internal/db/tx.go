package db

import (
	"context"
	"errors"
)

var errOver = errors.New("the transaction is over")

// txState is the state of a transaction that both engines share.
type txState struct {
	to     scope
	over   bool  // the function that it was passed to has ended
	broken error // error of the first statement that failed: PostgreSQL refuses all later ones, so SQLite must, too
}

// usable returns the description of a statement, or an error if the transaction
// is over or broken.
func (tx *txState) usable(sql string) (*statement, error) {
	st := describe(sql)
	tx.to.check(st)
	if tx.over {
		return nil, errOver
	}
	return st, tx.broken
}

// keeping has the values that the writes of a shared transaction have kept, by their keys.
type keeping map[any]kept

type kept struct {
	value  any
	finish func(ctx context.Context, tx Tx) error
}
