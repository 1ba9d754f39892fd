package model_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// The status and the error text of a provider tell whether the prompt is refused, the prompt is too long, or something
// else is wrong.
func TestTheWordsOfProviders(t *testing.T) {
	t.Parallel()
	fault := func(words string) string { return `{"error":{"message":"` + words + `"}}` }
	for name, c := range map[string]struct {
		status int
		body   string
		kind   model.FaultKind
		answer int // the status of the response
	}{
		"moderation as a limit":   {429, fault("Your request was blocked: content moderation"), model.Content, 400},
		"moderation as a key":     {401, fault("request blocked by content policy"), model.Content, 400},
		"moderation as credit":    {402, fault("Blocked by our usage policy"), model.Content, 400},
		"moderation as a fault":   {500, fault("InternalError.Algo.DataInspectionFailed"), model.Content, 400},
		"Chinese":                 {429, fault("内容安全审核未通过"), model.Content, 400},
		"Chinese as a key":        {401, fault("输入内容涉嫌违规"), model.Content, 400},
		"Chinese as credit":       {402, fault("输入包含敏感内容"), model.Content, 400},
		"a Chinese account":       {401, fault("账号因违规已被停用"), model.Failed, 401},
		"Japanese":                {429, fault("コンテンツポリシーに違反しています"), model.Content, 400},
		"Korean":                  {401, fault("콘텐츠 정책을 위반했습니다"), model.Content, 400},
		"German":                  {429, fault("Die Eingabe verstößt gegen unsere Inhaltsrichtlinie."), model.Content, 400},
		"Russian":                 {401, fault("нарушение политики модерации"), model.Content, 400},
		"French":                  {429, fault("Ce texte enfreint nos règles."), model.Content, 400},
		"Spanish":                 {402, fault("El texto infringe nuestra política de contenido."), model.Content, 400},
		"xAI":                     {403, `{"error":"Content violates usage guidelines. Failed check"}`, model.Content, 400},
		"DeepSeek":                {400, fault("Content Exists Risk"), model.Content, 400},
		"a message's place":       {400, fault("Unsupported parameter: messages[3].content[0].cache"), model.Content, 400},
		"a prefill":               {400, fault("This model does not support assistant message prefill."), model.Content, 400},
		"a prompt beyond credit":  {402, fault("Prompt tokens limit exceeded: 12000 > 9000"), model.Overflow, 400},
		"no credit":               {402, "", model.Credits, 402},
		"a spending limit":        {400, fault("You have reached your specified API usage limits."), model.Credits, 402},
		"a limit of moderations":  {429, fault("Rate limit reached for content moderation requests"), model.Failed, 429},
		"a limit":                 {429, fault("Slow down, see our usage policies on rate limits"), model.Failed, 429},
		"a key":                   {401, fault("No such key"), model.Failed, 401},
		"a key of Google":         {400, fault("API key not valid. Please pass a valid API key."), model.Failed, 401},
		"a permission":            {403, fault("Not authorized: no identity-based policy allows it"), model.Failed, 401},
		"an organization":         {400, fault("This organization has been disabled."), model.Failed, 400},
		"a place":                 {400, fault("User location is not supported for the API use."), model.Failed, 400},
		"a parameter":             {400, fault("Unsupported parameter: 'max_tokens'. Use another."), model.Failed, 400},
		"a setting of the server": {400, fault("'auto' tool choice requires --enable-auto-tool-choice"), model.Failed, 400},
		"tools":                   {400, fault("m does not support tools"), model.Failed, 400},
		"MiniMax": {200, `{"base_resp":{"status_code":1026,"status_msg":"input new_sensitive"},"choices":null}`,
			model.Content, 400},
		"MiniMax's limit": {200, `{"base_resp":{"status_code":1002,"status_msg":"limit"}}`, model.Failed, 429},
		"Gemini":          {200, `{"promptFeedback":{"blockReason":"SAFETY"}}`, model.Content, 400},
		"Gemini's end": {200, `{"choices":[{"finish_reason":"content_filter: PROHIBITED_CONTENT",
			"message":{"role":"assistant"}}]}`, model.Content, 400},
		"Zhipu":          {200, `{"choices":[{"finish_reason":"sensitive","message":{"content":"x"}}]}`, model.Content, 400},
		"another answer": {200, `{"message":"Come back later"}`, model.Broken, 500},
	} {
		m := modeltest.New(t)
		if c.status == http.StatusOK {
			m.Says(modeltest.Answer{Raw: c.body})
		} else {
			m.Says(modeltest.Answer{Status: c.status, Text: c.body})
		}
		_, err := clients(t, m)[model.FormatOpenAI].Answer(t.Context(), model.Request{Model: "m",
			Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
		f, is := err.(*model.Fault) //nolint:errorlint // as Client promises it
		if !is || f.Kind != c.kind || f.AnswerStatus() != c.answer {
			t.Errorf("%s: got %+v, want the kind %d and the status %d", name, err, c.kind, c.answer)
			continue
		}
		if c.status != http.StatusOK && model.IsContent(c.status, c.body) != (c.kind == model.Content) {
			t.Errorf("%s: the report of a caller's loop means something else", name)
		}
		words := map[string]string{"MiniMax": "input new_sensitive", "Gemini": "SAFETY", "Gemini's end": "PROHIBITED_CONTENT",
			"another answer": "Come back later", "a permission": "identity-based"}[name]
		if !strings.Contains(strings.ToUpper(f.Words), strings.ToUpper(words)) {
			t.Errorf("%s: the words are %q, want %q", name, f.Words, words)
		}
		if name == "a permission" && !strings.Contains(f.Error(), words) {
			t.Errorf("%s: the log says %q", name, f)
		}
	}
}
