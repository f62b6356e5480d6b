package db

import (
	"context"
	"strings"

	"gatehouse/internal/email"
)

// rekeyAtOnce is how many rows rekeyEmails reads at once, so that its memory
// does not grow with the number of users.
const rekeyAtOnce = 1000

// unlikely is the SQL condition that selects addresses whose canonical form may
// have changed: those that are not ASCII or name an international domain.
const unlikely = `(octet_length(email) <> length(email) OR lower(email) LIKE '%xn--%')`

// keyedRow is a row with an e-mail address and its key.
type keyedRow struct{ tenant, user, email, key string }

// rekeyEmails recomputes the keys of e-mail addresses in their canonical form.
//
// Two accounts of a tenant whose addresses have the same canonical form stay
// separate. One gets the canonical key: the account that already has it, else
// the older one. The other keeps the key that it was created with
// (user.Clashes).
func rekeyEmails(ctx context.Context, tx Tx) error {
	err := inPages(ctx, tx, `SELECT tenant_id, user_id, email, email_key FROM users
		WHERE (tenant_id > $1 OR tenant_id = $1 AND user_id > $2) AND `+unlikely+` ORDER BY tenant_id, user_id LIMIT $3`,
		func(row keyedRow) error { return rekeyUser(ctx, tx, row) })
	if err != nil {
		return err
	}
	return inPages(ctx, tx, `SELECT tenant_id, email_key || '/' || user_id, email, email_key FROM audit_users
		WHERE (tenant_id > $1 OR tenant_id = $1 AND email_key || '/' || user_id > $2) AND `+unlikely+`
		ORDER BY tenant_id, email_key || '/' || user_id LIMIT $3`,
		func(row keyedRow) error {
			row.user = row.user[len(row.key)+1:]
			return rekeyAudited(ctx, tx, row)
		})
}

// inPages calls each for the rows of a statement, page by page. $1 and $2 are the
// tenant and user after which a page begins, $3 is its length.
func inPages(ctx context.Context, tx Tx, sql string, each func(keyedRow) error) error {
	last := keyedRow{}
	for {
		var page []keyedRow
		err := tx.Query(ctx, sql, func(r Row) error {
			page = append(page, keyedRow{r.Text(0), r.Text(1), r.Text(2), r.Text(3)})
			return nil
		}, last.tenant, last.user, rekeyAtOnce)
		if err != nil {
			return err
		}
		for _, row := range page {
			if err := each(row); err != nil {
				return err
			}
		}
		if len(page) < rekeyAtOnce {
			return nil
		}
		last = page[len(page)-1]
	}
}

// rekeyUser sets an account's key to the canonical key of its address or, if
// another account has that key, to a space followed by its former key.
func rekeyUser(ctx context.Context, tx Tx, row keyedRow) error {
	key := email.Key(row.email)
	if key == row.key || strings.HasPrefix(row.key, " ") {
		return nil
	}
	taken := false
	err := tx.Query(ctx, `SELECT 1 FROM users WHERE tenant_id = $1 AND email_key = $2`, func(Row) error {
		taken = true
		return nil
	}, row.tenant, key)
	if err != nil {
		return err
	}
	if taken {
		key = " " + row.key
	}
	_, err = tx.Exec(ctx, `UPDATE users SET email_key = $3 WHERE tenant_id = $1 AND user_id = $2`, row.tenant, row.user, key)
	return err
}

// rekeyAudited does the same for an address that a user had while they used the
// API. The user may have a row with the canonical key already.
func rekeyAudited(ctx context.Context, tx Tx, row keyedRow) error {
	key := email.Key(row.email)
	if key == row.key {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO audit_users (tenant_id, email_key, user_id, email, seen_at)
		SELECT tenant_id, $3, user_id, email, seen_at FROM audit_users WHERE tenant_id = $1 AND user_id = $2 AND email_key = $4
		ON CONFLICT DO NOTHING`, row.tenant, row.user, key, row.key)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM audit_users WHERE tenant_id = $1 AND user_id = $2 AND email_key = $3`, row.tenant, row.user, row.key)
	return err
}
