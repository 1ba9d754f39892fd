package redact

import (
	_ "embed"
	"encoding/json"
	"sync"
)

//go:generate sh -c "cd ../../tools && go run ./gitleaksrules >../recall/redact/gitleaks.json"

// gitleaksJSON holds those rules of gitleaks (MIT, see gitleaks.LICENSE) that look at texts, not at paths.
//
//go:embed gitleaks.json
var gitleaksJSON []byte

// ruleSet is a list of rules, and what none of them may redact.
type ruleSet struct {
	Allow allowlist
	Rules []rule
}

// gitleaks returns the rules of gitleaks.
var gitleaks = sync.OnceValue(func() *ruleSet {
	var s ruleSet
	if err := json.Unmarshal(gitleaksJSON, &s); err != nil {
		panic(err) // broken compiled-in data
	}
	return &s
})
