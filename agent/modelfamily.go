package agent

import (
	"regexp"
	"slices"
	"strings"
)

// families lists settings that models refuse, by the models' names; the first that matches counts. Models of other
// names get all settings. Sources: OpenAI's and Anthropic's documentation, and Letta's clients of both, which leave out
// the same settings.
var families = []struct {
	name    *regexp.Regexp
	refuses []string // names in model_settings
}{
	{regexp.MustCompile(`^gpt-5-chat`), []string{"reasoning", "verbosity"}},
	{regexp.MustCompile(`^gpt-[5-9]`), []string{"temperature", "frequency_penalty"}},
	{regexp.MustCompile(`^o1-(mini|preview)`),
		[]string{"temperature", "frequency_penalty", "parallel_tool_calls", "verbosity", "reasoning"}},
	{regexp.MustCompile(`^o[1-9]`), []string{"temperature", "frequency_penalty", "parallel_tool_calls", "verbosity"}},
	{regexp.MustCompile(`^(gpt-[34]|chatgpt-4)`), []string{"reasoning", "verbosity"}},
	{regexp.MustCompile(`^claude-(2|3-[^7]|instant)`), []string{"effort", "thinking"}},
	{regexp.MustCompile(`^claude-(3-7|(opus|sonnet)-4-([01]|2025)|(sonnet|haiku)-4-5)`), []string{"effort"}},
}

// refuses reports whether a model refuses a setting of model_settings. name is the model's, without its provider.
func refuses(name, setting string) bool {
	name = strings.ToLower(name)
	for _, f := range families {
		if f.name.MatchString(name) {
			return slices.Contains(f.refuses, setting)
		}
	}
	return false
}
