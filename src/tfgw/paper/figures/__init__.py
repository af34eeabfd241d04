"""The paper's figures, one small file each: ``draw(experiment, series, records, data_dir)``, a matplotlib figure."""
