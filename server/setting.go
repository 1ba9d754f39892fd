package server

// Setting is a setting of the server, with its value.
type Setting struct {
	Variable string `json:"variable" doc:"Of the environment."`
	Flag     string `json:"flag" doc:"Of 'loci serve'."`
	Value    string `json:"value" doc:"Empty for none; hidden for a secret."`
	Origin   string `json:"origin" doc:"Where the value is from." enum:"flag,environment,default"`
	Meaning  string `json:"meaning" doc:"What it sets."`
}

// Where the value of a Setting comes from. A flag wins over the environment.
const (
	OfFlag        = "flag"
	OfEnvironment = "environment"
	OfDefault     = "default"
)
