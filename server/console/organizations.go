package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

func organizationRoutes() map[string]handler {
	return map[string]handler{
		"GET organizations":               organizationsPage,
		"POST organizations":              createOrganization,
		"POST organizations/{org}/rename": renameOrganization,
		"POST organizations/{org}/quotas": setQuotas,
		"POST organizations/{org}/delete": deleteOrganization,
	}
}

// organization is an organization in the API's form.
type organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// orgUsage is the usage of an organization in the API's form.
type orgUsage struct {
	OrgID       string           `json:"org_id"`
	Agents      int64            `json:"agents"`
	Documents   int              `json:"documents"`
	Passages    int64            `json:"passages"`
	Messages    int              `json:"messages"`
	StoredBytes int64            `json:"stored_bytes"`
	Bytes       map[string]int64 `json:"bytes"`
	Requests    int64            `json:"requests"`
	PeriodStart time.Time        `json:"period_start"`
	Quotas      struct {
		Agents      *int64 `json:"agents"`
		StoredBytes *int64 `json:"stored_bytes"`
		Requests    *int64 `json:"requests_per_month"`

		GatewayRequests *int64 `json:"gateway_requests_per_day"`
		GatewayTokens   *int64 `json:"gateway_tokens_per_day"`
	} `json:"quotas"`
}

// quotaView is a quota, and how much of it is used.
type quotaView struct {
	Limit int64
	Meter meterView
}

func quotaOf(used int64, limit *int64) *quotaView {
	if limit == nil {
		return nil
	}
	share := 100.0
	if *limit > used {
		share = 100 * float64(used) / float64(*limit)
	}
	class := ""
	switch {
	case share >= 100:
		class = "full"
	case share >= 90:
		class = "near"
	}
	return &quotaView{*limit, meterView{class, number(share) + " % of the quota is used", share}}
}

// OfAgents shows the quota of agents; nil without a quota.
func (u orgUsage) OfAgents() *quotaView { return quotaOf(u.Agents, u.Quotas.Agents) }

// OfBytes shows the quota of stored bytes; nil without a quota.
func (u orgUsage) OfBytes() *quotaView { return quotaOf(u.StoredBytes, u.Quotas.StoredBytes) }

// OfRequests shows the quota of requests; nil without a quota.
func (u orgUsage) OfRequests() *quotaView { return quotaOf(u.Requests, u.Quotas.Requests) }

// limitText is a quota in the field of a form; empty without a quota.
func limitText(limit *int64) string {
	if limit == nil {
		return ""
	}
	return strconv.FormatInt(*limit, 10)
}

// organizationRow is an organization. Administrators also see its usage.
type organizationRow struct {
	organization
	Usage *orgUsage
}

func organizationsPage(v *visit) error {
	return v.show(page{Title: "Organizations", Tab: "Organizations", Sub: "Each sees only its own memories.",
		Cards: []card{{Name: "orgs-list", Title: "Organizations", Width: "w12",
			Load: loaded(orgsListCard, organizationRows)}}})
}

func organizationRows(v *visit) (list[organizationRow], error) {
	rows, err := paged(v, "/v1/admin/orgs", url.Values{}, func(o organizationRow) string { return o.ID })
	if err != nil || !v.MayAdmin() {
		return rows, err
	}
	for i, o := range rows.Items {
		var usage []orgUsage
		if err := v.get("/v1/admin/usage?"+url.Values{"org_id": {o.ID}}.Encode(), &usage); err != nil {
			return rows, err
		}
		if len(usage) == 1 {
			rows.Items[i].Usage = &usage[0]
		}
	}
	return rows, nil
}

// setQuotas sets the quotas of an organization. An empty field means no limit.
func setQuotas(v *visit) error {
	body := map[string]any{}
	for _, name := range []string{"agents", "stored_bytes", "requests_per_month", "gateway_requests_per_day",
		"gateway_tokens_per_day"} {
		body[name] = nil
		if text := strings.ReplaceAll(strings.TrimSpace(v.r.PostFormValue(name)), ",", ""); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return &apiError{Status: http.StatusUnprocessableEntity,
					Detail: "The quota " + name + " is not a number: " + text + ". Leave it empty for no limit."}
			}
			body[name] = n
		}
	}
	path := "/v1/admin/quotas?" + url.Values{"org_id": {v.r.PathValue("org")}}.Encode()
	if err := v.send(http.MethodPatch, path, body, nil); err != nil {
		return err
	}
	return v.done(base+"organizations", "saved")
}

func createOrganization(v *visit) error {
	err := v.send(http.MethodPost, "/v1/admin/orgs", map[string]any{"name": v.r.PostFormValue("name")}, nil)
	if err != nil {
		return err
	}
	return v.done(base+"organizations", "created")
}

// organizationPath is the API's address for changing the organization in the page's address.
func (v *visit) organizationPath() string {
	return "/v1/admin/orgs?" + url.Values{"org_id": {v.r.PathValue("org")}}.Encode()
}

func renameOrganization(v *visit) error {
	body := map[string]any{"name": v.r.PostFormValue("name")}
	if err := v.send(http.MethodPatch, v.organizationPath(), body, nil); err != nil {
		return err
	}
	return v.done(base+"organizations", "renamed")
}

// deleteOrganization deletes an organization, if the person typed its name.
func deleteOrganization(v *visit) error {
	var all []organization
	if err := v.get("/v1/admin/orgs?limit=1000", &all); err != nil {
		return err
	}
	index := slices.IndexFunc(all, func(o organization) bool { return o.ID == v.r.PathValue("org") })
	if v.caller.Operator && index >= 0 && strings.TrimSpace(v.r.PostFormValue("name")) != all[index].Name {
		return &apiError{Status: http.StatusUnprocessableEntity,
			Detail: "To delete the organization with everything in it, write its name, " + all[index].Name + "."}
	}
	if err := v.send(http.MethodDelete, v.organizationPath(), nil, nil); err != nil {
		return err
	}
	return v.done(base+"organizations", "deleted")
}
