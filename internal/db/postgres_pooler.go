package db

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A pooler, such as PgBouncer, lends connections of the server to its clients, for a session or
// for a transaction. It takes none of our settings at the start of a connection: it refuses
// them, or has been told to ignore them. And a statement that was prepared on one connection of
// the server may be run on another.
var errPooler = errors.New("a pooler stands before the server")

// direct is a setting of no meaning, which a server itself keeps for a connection that begins
// with it, and a pooler does not. It differs from those that an operator may have told the pooler
// to ignore, and that another of its clients may have left on a connection.
const direct = "gatehouse.direct"

// poolerTakes are the settings that a pooler follows for each of its clients.
var poolerTakes = []string{"application_name", "timezone"}

// poolerRefused reports whether a connection failed because a pooler does not take our settings.
func poolerRefused(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "08P01" && strings.HasPrefix(pg.Message, "unsupported startup parameter")
}

// notice is how soon the server shall notice that a pooler has closed a connection in the middle of a
// statement, which then ends.
const notice = ` client_connection_check_interval = '500ms'`

// behindPooler makes a configuration one for connections through a pooler. Each connection sets
// the settings, which is right for a pool of sessions; in a pool of transactions they stay on the
// connection of the server, whose other clients have the same. A transaction sets them for
// itself: begin is the text that begins it. Statements are not prepared, unless the URL says how
// they are run.
func behindPooler(config *pgxpool.Config, url string) (begin string) {
	params := config.ConnConfig.RuntimeParams
	delete(params, direct)
	var all, local strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sessionSettings)) {
		if slices.Contains(poolerTakes, name) {
			continue
		}
		value := " = '" + strings.ReplaceAll(params[name], "'", "''") + "'; "
		delete(params, name)
		all.WriteString("set " + name + value)
		if name != "default_transaction_isolation" { // of transactions that begin later
			local.WriteString("set local " + name + value)
		}
	}
	if !strings.Contains(url, "default_query_exec_mode") {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	// No request to cancel goes through a pooler (see link.RemoteAddr). Closing a connection is cheap here.
	config.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		if err := c.PgConn().Exec(ctx, all.String()).Close(); err != nil {
			return err
		}
		_, err := notices(ctx, c.PgConn())
		return err
	}
	return "begin isolation level read committed; " + strings.TrimSuffix(local.String(), "; ")
}

// notices sets notice. It reports false where the server has no such setting: before PostgreSQL 14, and
// on Windows.
func notices(ctx context.Context, c *pgconn.PgConn) (bool, error) {
	err := c.Exec(ctx, "set"+notice).Close()
	if _, refused := errors.AsType[*pgconn.PgError](err); refused {
		return false, nil
	}
	return err == nil, err
}

// isDirect returns errPooler if the connection has not kept the setting direct.
func (c pgConn) isDirect(ctx context.Context) error {
	results, err := c.PgConn().Exec(ctx, "select current_setting('"+direct+"', true)").ReadAll()
	if err != nil {
		return c.failed(ctx, err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != "on" {
		return errPooler
	}
	return nil
}
