-- Modules that a tenant's components import, and what a component is given. definition
-- is JSON; secrets is a JSON object of sealed texts by name.
CREATE TABLE component_modules (
  tenant_id {text} NOT NULL,
  name {text} NOT NULL,
  definition {text} NOT NULL,
  source {text} NOT NULL,
  PRIMARY KEY (tenant_id, name)
);
ALTER TABLE logic_components ADD COLUMN secrets {text} NOT NULL DEFAULT '{}';
