package db

import "errors"

var errOver = errors.New("the transaction is over")

// txState is what a transaction of either engine is bound to and has come to.
type txState struct {
	to     scope
	over   bool  // the function it was handed to has ended
	broken error // the first statement that failed: PostgreSQL refuses all others, so SQLite must
}

// usable is what is known of a text, unless the transaction runs no more.
func (tx *txState) usable(sql string) (*statement, error) {
	st := describe(sql)
	tx.to.check(st)
	if tx.over {
		return nil, errOver
	}
	return st, tx.broken
}
