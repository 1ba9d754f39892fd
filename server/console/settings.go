package console

import "net/http"

func settingRoutes() map[string]handler {
	return map[string]handler{
		"GET settings":             settingsPage,
		"POST settings/embeddings": func(v *visit) error { return v.testEndpoint("embeddings") },
		"POST settings/model":      func(v *visit) error { return v.testEndpoint("model") },
	}
}

// setting is a setting of the server in the API's form.
type setting struct{ Variable, Flag, Value, Origin, Meaning, Stored string }

// finding is the result of testing an endpoint.
type finding struct{ Of, State, Text, Remedy string }

// endpoint is an endpoint that can be tested, with the result of a test that was just made.
type endpoint struct {
	Name, Title, URL, Model string
	Found                   *finding // nil without a test
}

func settingsPage(v *visit) error { return v.show(settings(nil)) }

// settings returns the page. found is the result of a test that was just made, or nil.
func settings(found *finding) page {
	return page{Title: "Settings", Tab: "Settings", Sub: "What this server runs with, and where each value is from.",
		Cards: []card{
			{Name: "settings-endpoints", Title: "Endpoints", Width: "w12", Load: loaded(settingsEndpointsCard,
				func(v *visit) ([]endpoint, error) {
					list, err := v.settings()
					return endpoints(list, found), err
				})},
			{Name: "settings-list", Title: "Settings of this server", Width: "w12",
				Load: loaded(settingsListCard, (*visit).settings)},
		}}
}

func (v *visit) settings() (list []setting, err error) {
	err = v.get("/v1/admin/settings", &list)
	return list, err
}

// endpoints returns the endpoints that the settings name.
func endpoints(list []setting, found *finding) []endpoint {
	value := map[string]string{}
	for _, s := range list {
		value[s.Variable] = s.Value
	}
	embeddings := endpoint{"embeddings", "Embeddings", value["LOCI_EMBEDDING_BASE_URL"], value["LOCI_EMBEDDING_MODEL"],
		nil}
	if kind := value["LOCI_EMBEDDING"]; kind == "builtin" || kind == "" && embeddings.URL == "" {
		embeddings.URL, embeddings.Model = "built in", "all-MiniLM-L6-v2"
	} else if kind == "off" {
		embeddings.URL, embeddings.Model = "", ""
	}
	all := []endpoint{
		embeddings,
		{"model", "Language model", value["LOCI_LLM_BASE_URL"], value["LOCI_LLM_MODEL"], nil}}
	for i := range all {
		if found != nil && found.Of == all[i].Name {
			all[i].Found = found
		}
	}
	return all
}

// testEndpoint tests an endpoint, and shows the page with the result.
func (v *visit) testEndpoint(name string) error {
	var found finding
	if err := v.send(http.MethodPost, "/v1/admin/endpoints/"+name+"/check", nil, &found); err != nil {
		return err
	}
	v.render(http.StatusOK, settings(&found))
	return nil
}
