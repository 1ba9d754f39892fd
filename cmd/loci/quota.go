package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/quota"
)

// orgsQuotaCmd shows or changes the quotas of an organization.
type orgsQuotaCmd struct {
	admin
	asked
	Name        string  `arg:"" help:"Name or ID of the organization."`
	Agents      *string `placeholder:"N" help:"Agents; 'none' is no limit."`
	StoredBytes *string `placeholder:"N" help:"Bytes of what it stores; 'none' is no limit."`
	Requests    *string `name:"requests-per-month" placeholder:"N" help:"Requests of a month in UTC; 'none' is no limit."`

	GatewayRequests *string `name:"gateway-requests-per-day" placeholder:"N" help:"Requests to the gateway that the server pays for; 'none' is no limit."` //nolint:lll // a tag is one line
	GatewayTokens   *string `name:"gateway-tokens-per-day" placeholder:"N" help:"Their tokens, of prompts and answers; 'none' is no limit."`               //nolint:lll // a tag is one line
}

func (c orgsQuotaCmd) Run(ctx context.Context, s streams) error {
	change := map[string]*int64{}
	for _, f := range []struct {
		flag, field string
		text        *string
	}{{"--agents", db.QuotaAgents, c.Agents}, {"--stored-bytes", db.QuotaStoredBytes, c.StoredBytes},
		{"--requests-per-month", db.QuotaRequests, c.Requests},
		{"--gateway-requests-per-day", db.QuotaGatewayRequests, c.GatewayRequests},
		{"--gateway-tokens-per-day", db.QuotaGatewayTokens, c.GatewayTokens}} {
		if f.text == nil {
			continue
		}
		n, ok := quotaNumber(*f.text)
		if !ok {
			return settingError{fmt.Errorf("%s is '%s'; it must be a number from 0, or 'none' for no limit", f.flag, *f.text)}
		}
		change[f.field] = n
	}
	var requested quota.Limits
	changeLimits(&requested, change)
	if err := requested.Check(); err != nil {
		return settingError{err}
	}
	return c.with(ctx, s, false, func(a administration) error {
		limits, err := a.UpdateQuotas(ctx, c.Name, change)
		if err != nil {
			return err
		}
		return printFields(s, c.asked, "QUOTA | LIMIT", limits)
	})
}

// quotaNumber parses a quota; nil for "none".
func quotaNumber(text string) (limit *int64, ok bool) {
	if text == "none" {
		return nil, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return &n, err == nil && n >= 0
}

// orgsUsageCmd reports the usage of organizations.
type orgsUsageCmd struct {
	admin
	asked
	Name string `arg:"" optional:"" help:"Name or ID of the organization (default: all)."`
}

func (c orgsUsageCmd) Run(ctx context.Context, s streams) error {
	return c.with(ctx, s, false, func(a administration) error {
		all, err := a.Usage(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s, all)
		}
		rows := make([][]string, len(all))
		for i, u := range all {
			rows[i] = []string{u.OrgName, ofQuota(u.Agents, u.Quotas.Agents), fmt.Sprint(u.Documents),
				fmt.Sprint(u.Passages), fmt.Sprint(u.Messages), ofQuota(u.StoredBytes, u.Quotas.StoredBytes),
				ofQuota(u.Requests, u.Quotas.Requests)}
		}
		return printTable(s, "ORGANIZATION | AGENTS | DOCUMENTS | PASSAGES | MESSAGES | STORED BYTES | REQUESTS THIS MONTH",
			rows)
	})
}

// ofQuota formats a usage, with its quota if there is one.
func ofQuota(used int64, limit *int64) string {
	if limit == nil {
		return fmt.Sprint(used)
	}
	return fmt.Sprintf("%d of %d", used, *limit)
}
