package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// UserScope says whose memories a query reads: those of one user, and always those that belong to no user. The zero
// value reads only the latter, so that a query without a scope shows nobody's memories to another one.
type UserScope struct {
	user int64
	all  bool
}

// OfUser is the scope of a user, by the key of the identity. If the key is 0, it is the scope of nobody.
func OfUser(key int64) UserScope { return UserScope{user: key} }

// AllUsers is the scope of operators and of agents whose users share a memory: it reads the memories of every user.
func AllUsers() UserScope { return UserScope{all: true} }

// Equal reports whether two scopes read the same memories.
func (u UserScope) Equal(other UserScope) bool { return u == other }

// All reports whether the scope reads the memories of every user.
func (u UserScope) All() bool { return u.all }

// User returns the key of the scope's user; 0 if the scope is nobody's or everybody's.
func (u UserScope) User() int64 { return u.user }

// Where returns the condition that a row is in the scope, and adds its argument to args. owner is SQL for the key of
// the user to whom the row belongs, which is NULL for a row of no user.
func (u UserScope) Where(owner string, args pgx.StrictNamedArgs) string {
	if u.all {
		return `true`
	}
	args["scope_user"] = u.user
	return `(` + owner + ` IS NULL OR ` + owner + ` = @scope_user)`
}

type boundUser struct{}

// WithUser returns a context of work for one user, by the key of the identity: a request with a key that is bound to
// the user, or one that names it.
func WithUser(ctx context.Context, key int64) context.Context {
	return context.WithValue(ctx, boundUser{}, key)
}

// UserOf returns the key of the user that ctx works for, or 0 if it works for no single one.
func UserOf(ctx context.Context) int64 {
	key, _ := ctx.Value(boundUser{}).(int64)
	return key
}

// ScopeOf returns the scope of the user that ctx works for; AllUsers if it works for no single one.
func ScopeOf(ctx context.Context) UserScope {
	if key := UserOf(ctx); key != 0 {
		return OfUser(key)
	}
	return AllUsers()
}
