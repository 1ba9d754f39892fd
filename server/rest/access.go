package rest

import (
	"github.com/loci-memory/loci/tenant/apikey"
)

// Access says which keys may call an operation.
type Access int

// The kinds of access. Each operation is registered with one of them.
const (
	_         Access = iota
	Public           // no key is needed
	AnyKey           // every key: the operation shows nothing of an organization
	Read             // keys with the scope read
	ReadAgent        // Read keys, and keys with the scope tools for the agent that the path names
	Tools            // keys with the scope write, and keys with the scope tools for the agent that the path names
	Write            // keys with the scope write
	Admin            // keys with the scope admin
	Operator         // keys of the operator
)

// scopes returns the scopes that give access; any one of them suffices.
func (a Access) scopes() []string {
	return map[Access][]string{Read: {apikey.Read}, ReadAgent: {apikey.Read, apikey.Tools},
		Tools: {apikey.Tools, apikey.Write}, Write: {apikey.Write}, Admin: {apikey.Admin}}[a]
}

// security is the access in an OpenAPI document: any entry suffices. Each entry names a scope, "operator", or any key.
func (a Access) security() []map[string][]string {
	if a == Public {
		return []map[string][]string{}
	}
	list := []map[string][]string{}
	for _, scope := range a.scopes() {
		list = append(list, map[string][]string{"key": {scope}})
	}
	if a == Operator {
		list = append(list, map[string][]string{"key": {"operator"}})
	}
	if len(list) == 0 {
		list = append(list, map[string][]string{"key": {}})
	}
	return list
}
