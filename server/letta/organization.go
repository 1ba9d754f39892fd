package letta

import (
	"time"

	"github.com/loci-memory/loci/tenant/apikey"
)

// Organization is an organization in Letta's shape.
type Organization struct {
	ID              string    `json:"id"`
	Name            string    `json:"name"`
	CreatedAt       time.Time `json:"created_at"`
	PrivilegedTools bool      `json:"privileged_tools" doc:"Always false: Loci runs no tools of others."`
}

// OrganizationOf returns an organization in Letta's shape.
func OrganizationOf(o apikey.Organization) Organization {
	return Organization{ID: o.ID, Name: o.Name, CreatedAt: o.CreatedAt}
}

// NameOrganization is a request to create or rename an organization.
type NameOrganization struct {
	Name            string `json:"name" doc:"From 1 to 200 characters; no two organizations have the same."`
	PrivilegedTools bool   `json:"privileged_tools,omitzero" doc:"Accepted for Letta's clients; it has no effect."`
}
