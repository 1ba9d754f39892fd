package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/server/gateway"
)

// upstreams holds the settings of the gateway, and of the providers that it and the agents ask.
type upstreams struct {
	Upstreams secret `name:"upstreams" env:"LOCI_UPSTREAMS" help:"Providers of models: a JSON list, or @ and the path of a file with one."` //nolint:lll // a tag is one line

	GatewayMode      string `name:"gateway-mode" env:"LOCI_GATEWAY_MODE" default:"remember" help:"What the gateway does with requests that name no mode: observe, remember or manage."`      //nolint:lll // likewise
	GatewayOnFailure string `name:"gateway-on-failure" env:"LOCI_GATEWAY_ON_FAILURE" default:"pass" help:"What happens to its requests while the memory cannot be reached: pass or refuse."` //nolint:lll // likewise
}

// named returns the upstreams that LOCI_UPSTREAMS names.
func (u upstreams) named() (model.Upstreams, error) {
	all, err := model.ParseUpstreams(string(u.Upstreams), os.Getenv)
	if err != nil {
		return nil, settingError{fmt.Errorf("LOCI_UPSTREAMS: %w", err)}
	}
	return all, nil
}

// checkGateway returns an error for a setting of the gateway that means nothing.
func (u upstreams) checkGateway() error {
	if !slices.Contains(agent.GatewayModes, u.GatewayMode) {
		return settingError{fmt.Errorf("LOCI_GATEWAY_MODE is %q; it must be observe, remember or manage", u.GatewayMode)}
	}
	if u.GatewayOnFailure != gateway.Pass && u.GatewayOnFailure != gateway.Refuse {
		return settingError{fmt.Errorf("LOCI_GATEWAY_ON_FAILURE is %q; it must be pass or refuse", u.GatewayOnFailure)}
	}
	return nil
}

// asked returns the providers that the gateway asks: those of LOCI_UPSTREAMS, then that of LOCI_LLM_BASE_URL as
// openai and that of LOCI_ANTHROPIC_API_KEY as anthropic. Without those, the two are the providers themselves, for
// clients that bring a credential.
func (c *serving) asked() (model.Upstreams, error) {
	all, err := c.named()
	if err != nil {
		return nil, err
	}
	all, err = all.With(
		model.Upstream{Name: model.FormatOpenAI, API: model.FormatOpenAI, URL: c.language.BaseURL,
			Key: string(c.Key)},
		model.Upstream{Name: model.FormatAnthropic, API: model.FormatAnthropic, URL: c.AnthropicURL,
			Key: string(c.AnthropicKey)})
	if err != nil {
		return nil, settingError{err}
	}
	return all, nil
}
