-- NULL until the attempt is launched; then the gang's secret and what ports each node found for it.
ALTER TABLE attempts ADD COLUMN launch TEXT;
ALTER TABLE attempts ADD COLUMN last_lines TEXT;
UPDATE attempts SET launch = '';
