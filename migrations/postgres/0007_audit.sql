-- What operators did, and why. Every command that needs a reason writes here, in the transaction of its effect.
CREATE TABLE audit_log (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    operator text        NOT NULL,
    action   text        NOT NULL,
    subject  text        NOT NULL,
    reason   text        NOT NULL CHECK (reason <> '')
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
